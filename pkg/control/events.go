package control

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/nfcomms/nfcomms/pkg/control/internal/surge"
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

// Bounds for the events of one caller at one device that are reported one by one. An event that
// nobody asked for has the caller "".
const (
	surgeBurst  = 32
	surgeWindow = time.Minute
)

// doer is a caller that did something, and the device.
type doer struct{ device, caller string }

// rare are the events that are always sent: no client can repeat them at will.
var rare = map[nfcommsv1.Event_Type]bool{
	nfcommsv1.Event_TYPE_DEVICE_ADDED:       true,
	nfcommsv1.Event_TYPE_DEVICE_REMOVED:     true,
	nfcommsv1.Event_TYPE_OPEN_FAILED:        true,
	nfcommsv1.Event_TYPE_DIAGNOSTIC_CHANGED: true,
	nfcommsv1.Event_TYPE_RESET:              true,
	nfcommsv1.Event_TYPE_PROGRAM_LOADED:     true,
	nfcommsv1.Event_TYPE_SUPPRESSED:         true,
}

// callerOf names who makes a call, "" if unknown.
func (s *Server) callerOf(ctx context.Context) string {
	if s.opt.Caller == nil {
		return ""
	}
	return s.opt.Caller(ctx)
}

// happening is an event before it has its number.
type happening struct {
	t        nfcommsv1.Event_Type
	severity nfcommsv1.Event_Severity
	resource string
	message  string
	caller   string
	err      error
}

// event keeps and logs what happened to a resource of a device, unless its
// caller does so much that it is counted only.
func (s *Server) event(device string, h happening) {
	kind := plain(h.t.String(), "TYPE_")
	if !rare[h.t] && h.severity != nfcommsv1.Event_SEVERITY_ERROR && !s.surges.Pass(doer{device, h.caller}, kind, 0) {
		return
	}
	s.eventHub.publish(device, func(number int64) *nfcommsv1.Event {
		return &nfcommsv1.Event{
			Name:     eventName(device, number),
			Time:     timestamppb.Now(),
			Type:     h.t,
			Severity: h.severity,
			Resource: h.resource,
			Message:  text(h.message),
			Failure:  failureOf(h.err),
			Caller:   text(h.caller),
		}
	})
	attrs := []any{"resource", h.resource, "event", kind}
	if h.caller != "" {
		attrs = append(attrs, "caller", h.caller)
	}
	if h.err != nil && !strings.HasPrefix(h.message, h.err.Error()) { // a count may follow
		attrs = append(attrs, "err", h.err)
	}
	s.log.Log(context.Background(), levels[h.severity], h.message, attrs...)
}

// suppressed reports what a caller did beyond what is reported one by one.
func (s *Server) suppressed(who doer, held map[string]surge.Tally) {
	s.event(who.device, happening{
		t: nfcommsv1.Event_TYPE_SUPPRESSED, severity: nfcommsv1.Event_SEVERITY_INFO,
		resource: DeviceName(who.device), caller: who.caller, message: surge.Text(held),
	})
}
