package control

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// channelService implements nfcomms.v1.ChannelService.
type channelService struct {
	nfcommsv1.UnsafeChannelServiceServer
	s *Server
}

// under returns the key filter of a parent, whose device must be there, and the
// devices it stands for.
func (s *Server) under(parent string) (string, []*device, error) {
	id, err := parseParent("parent", parent)
	if err != nil {
		return "", nil, err
	}
	devices, err := s.list(id)
	return id, devices, err
}

// at finds the device and the target of a channel's name.
func (s *Server) at(name string) (*device, nfcomms.Target, error) {
	id, t, err := parseChannel("name", name)
	if err != nil {
		return nil, 0, err
	}
	d, err := s.device(id)
	return d, t, err
}

// listed is a channel of a list before its counters are read.
type listed struct {
	key string
	seen
}

// channels lists the open channels of a device in the order of their numbers.
func (d *device) channels() []listed {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dev == nil {
		return nil
	}
	d.syncLocked()
	list := make([]listed, 0, len(d.seen))
	for t, s := range d.seen {
		list = append(list, listed{channelKey(d.id, t), s})
	}
	slices.SortFunc(list, func(a, b listed) int { return strings.Compare(a.key, b.key) })
	return list
}

// ListChannels lists channels.
func (v channelService) ListChannels(_ context.Context, req *nfcommsv1.ListChannelsRequest) (*nfcommsv1.ListChannelsResponse, error) {
	scope, devices, err := v.s.under(req.GetParent())
	if err != nil {
		return nil, err
	}
	var all []listed
	for _, d := range devices {
		all = append(all, d.channels()...)
	}
	all, next, err := page(pageOfChannels, scope, all, func(l listed) string { return l.key }, req)
	if err != nil {
		return nil, err
	}
	resp := &nfcommsv1.ListChannelsResponse{NextPageToken: next}
	for _, l := range all {
		resp.Channels = append(resp.Channels, l.described())
	}
	return resp, nil
}

// GetChannel returns one channel.
func (v channelService) GetChannel(_ context.Context, req *nfcommsv1.GetChannelRequest) (*nfcommsv1.GetChannelResponse, error) {
	d, t, err := v.s.at(req.GetName())
	if err != nil {
		return nil, err
	}
	m, err := d.channel(t)
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.GetChannelResponse{Channel: m}, nil
}

// OpenChannel opens a remote channel.
func (v channelService) OpenChannel(ctx context.Context, req *nfcommsv1.OpenChannelRequest) (*nfcommsv1.OpenChannelResponse, error) {
	d, t, err := v.s.at(req.GetName())
	if err != nil {
		return nil, err
	}
	m, err := d.openRemote(ctx, t)
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.OpenChannelResponse{Channel: m}, nil
}

// CloseChannel closes a remote channel.
func (v channelService) CloseChannel(ctx context.Context, req *nfcommsv1.CloseChannelRequest) (*nfcommsv1.CloseChannelResponse, error) {
	d, t, err := v.s.at(req.GetName())
	if err != nil {
		return nil, err
	}
	m, err := d.closeOne(ctx, t)
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.CloseChannelResponse{Channel: m}, nil
}

// WatchChannels streams the channels and what becomes of them.
func (v channelService) WatchChannels(req *nfcommsv1.WatchChannelsRequest, stream grpc.ServerStreamingServer[nfcommsv1.WatchChannelsResponse]) error {
	scope, _, err := v.s.under(req.GetParent())
	if err != nil {
		return err
	}
	w := &watch[*nfcommsv1.Channel]{
		s: v.s, hub: v.s.channelHub, kind: watchOfChannels, scope: scope,
		wants: func(key string) bool { return scope == "" || strings.HasPrefix(key, scope+"\x00") },
		send: func(c change[*nfcommsv1.Channel], token string) error {
			return stream.Send(&nfcommsv1.WatchChannelsResponse{
				Change: c.kind, Channel: c.value, Revision: c.revision, ResumeToken: token,
			})
		},
	}
	return w.run(stream.Context(), req.GetResumeToken())
}
