package control

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// eventService implements nfcomms.v1.EventService.
type eventService struct {
	nfcommsv1.UnsafeEventServiceServer
	s *Server
}

// eventKeys returns which events belong to a parent. A device that was removed
// still has its events.
func eventKeys(parent string) (scope string, wants func(key string) bool, err error) {
	scope, err = parseParent("parent", parent)
	return scope, func(key string) bool { return scope == "" || key == scope }, err
}

// ListEvents lists the kept events.
func (v eventService) ListEvents(_ context.Context, req *nfcommsv1.ListEventsRequest) (*nfcommsv1.ListEventsResponse, error) {
	scope, wants, err := eventKeys(req.GetParent())
	if err != nil {
		return nil, err
	}
	kept, _ := v.s.eventHub.snapshot()
	var all []change[*nfcommsv1.Event] // kept is the hub's
	for _, c := range kept {
		if wants(c.key) {
			all = append(all, c)
		}
	}
	number := func(c change[*nfcommsv1.Event]) string { return fmt.Sprintf("%019d", c.revision) }
	all, next, err := page(pageOfEvents, scope, all, number, req)
	if err != nil {
		return nil, err
	}
	resp := &nfcommsv1.ListEventsResponse{NextPageToken: next}
	for _, c := range all {
		resp.Events = append(resp.Events, c.value)
	}
	return resp, nil
}

// WatchEvents streams the kept events and new ones.
func (v eventService) WatchEvents(req *nfcommsv1.WatchEventsRequest, stream grpc.ServerStreamingServer[nfcommsv1.WatchEventsResponse]) error {
	scope, wants, err := eventKeys(req.GetParent())
	if err != nil {
		return err
	}
	w := &watch[*nfcommsv1.Event]{
		s: v.s, hub: v.s.eventHub, kind: watchOfEvents, scope: scope, wants: wants,
		send: func(c change[*nfcommsv1.Event], token string) error {
			return stream.Send(&nfcommsv1.WatchEventsResponse{
				Change: c.kind, Event: c.value, Revision: c.revision, ResumeToken: token,
			})
		},
	}
	return w.run(stream.Context(), req.GetResumeToken())
}
