package control

import (
	"context"
	"log/slog"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// severities are those of events that are not as they should be, beside those
// with a failure. The diagnostic word says it for its own.
var severities = map[nfcommsv1.Event_Type]nfcommsv1.Event_Severity{
	nfcommsv1.Event_TYPE_OPEN_FAILED:   nfcommsv1.Event_SEVERITY_ERROR,
	nfcommsv1.Event_TYPE_RESET:         nfcommsv1.Event_SEVERITY_WARNING,
	nfcommsv1.Event_TYPE_DRAIN_TIMEOUT: nfcommsv1.Event_SEVERITY_WARNING,
}

// levels are what the log calls a severity.
var levels = map[nfcommsv1.Event_Severity]slog.Level{
	nfcommsv1.Event_SEVERITY_INFO:    slog.LevelInfo,
	nfcommsv1.Event_SEVERITY_WARNING: slog.LevelWarn,
	nfcommsv1.Event_SEVERITY_ERROR:   slog.LevelError,
}

// severityOf is how much an event of a type matters.
func severityOf(t nfcommsv1.Event_Type, err error) nfcommsv1.Event_Severity {
	switch severity := severities[t]; {
	case severity != nfcommsv1.Event_SEVERITY_UNSPECIFIED:
		return severity
	case err != nil:
		return nfcommsv1.Event_SEVERITY_ERROR
	}
	return nfcommsv1.Event_SEVERITY_INFO
}

// event keeps and logs what happened to a resource of a device.
func (s *Server) event(device string, t nfcommsv1.Event_Type, severity nfcommsv1.Event_Severity, resource, message string, err error) {
	s.eventHub.tell(device, func(number int64) *nfcommsv1.Event {
		return &nfcommsv1.Event{
			Name:     eventName(device, number),
			Time:     timestamppb.Now(),
			Type:     t,
			Severity: severity,
			Resource: resource,
			Message:  text(message),
			Failure:  failureOf(err),
		}
	})
	attrs := []any{"resource", resource, "event", plain(t.String(), "TYPE_")}
	if err != nil && err.Error() != message {
		attrs = append(attrs, "err", err)
	}
	s.log.Log(context.Background(), levels[severity], message, attrs...)
}
