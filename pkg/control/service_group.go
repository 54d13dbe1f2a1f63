package control

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/group"
)

// groupService implements nfcomms.v1.GroupService.
type groupService struct {
	nfcommsv1.UnsafeGroupServiceServer
	s *Server
}

// ListGroups lists the members that the application shows.
func (v groupService) ListGroups(_ context.Context, req *nfcommsv1.ListGroupsRequest) (*nfcommsv1.ListGroupsResponse, error) {
	var all []*nfcommsv1.Group
	if v.s.opt.Groups != nil {
		for name, g := range v.s.opt.Groups() {
			all = append(all, groupOf(name, g.Stats()))
		}
	}
	slices.SortStableFunc(all, func(a, b *nfcommsv1.Group) int { return cmp.Compare(a.Name, b.Name) })
	all, next, err := page(pageOfGroups, "groups", all, (*nfcommsv1.Group).GetName, req)
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.ListGroupsResponse{Groups: all, NextPageToken: next}, nil
}

// groupOf returns what a member did. A name may hold any bytes; the wire takes text.
func groupOf(name string, s group.Stats) *nfcommsv1.Group {
	return &nfcommsv1.Group{
		Name: "groups/" + text(name), Rank: int32(s.Rank), Members: int32(s.Size),
		Algorithm: text(s.Algorithm), Reason: text(s.Why), Steps: s.Steps, FailedSteps: s.Failed,
		FramesSent: s.FramesSent, FramesReceived: s.FramesReceived, BytesSent: s.BytesSent, BytesReceived: s.BytesReceived,
		StepTime: durationpb.New(s.Time), WaitingTime: durationpb.New(s.Waiting),
	}
}
