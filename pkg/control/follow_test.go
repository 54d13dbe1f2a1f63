package control_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// act is one stream of a scripted watch: what it must be asked with, the tokens
// it gives ("" stands for a part of a snapshot), and how it ends.
type act struct {
	token string
	gives []string
	ends  error
}

// scripted is a device service whose watches follow a script.
type scripted struct {
	nfcommsv1.UnimplementedDeviceServiceServer
	t    *testing.T
	acts chan act
}

func (s *scripted) WatchDevices(req *nfcommsv1.WatchDevicesRequest, stream grpc.ServerStreamingServer[nfcommsv1.WatchDevicesResponse]) error {
	a := <-s.acts
	if req.ResumeToken != a.token {
		return status.Errorf(codes.FailedPrecondition, "asked with %q, want %q", req.ResumeToken, a.token)
	}
	for _, token := range a.gives {
		if err := stream.Send(&nfcommsv1.WatchDevicesResponse{ResumeToken: token}); err != nil {
			return err
		}
	}
	return control.ToStatus(a.ends)
}

// TestWatchGoesOn: the client's watch resumes where it was, and says when it
// begins anew.
func TestWatchGoesOn(t *testing.T) {
	s := &scripted{t: t, acts: make(chan act, 10)}
	for _, a := range []act{
		{"", []string{"", "a", "b"}, control.ErrSlowWatcher},
		{"b", []string{"c"}, control.ErrShutdown},
		{"c", nil, control.ErrResumeExpired},
		{"", []string{""}, control.ErrSlowWatcher}, // within the snapshot
		{"", []string{"", "d"}, status.Error(codes.Unavailable, "connection lost")},
		{"d", []string{"e"}, nfcomms.ErrNotSupported},
	} {
		s.acts <- a
	}
	l := bufconn.Listen(1 << 16)
	gs := grpc.NewServer()
	nfcommsv1.RegisterDeviceServiceServer(gs, s)
	served := make(chan error, 1)
	go func() { served <- gs.Serve(l) }()
	defer func() {
		gs.Stop()
		require.NoError(t, <-served)
	}()
	c := connect(t, func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) })

	var seen []string
	for r, err := range c.WatchDevices(background(t)) {
		switch {
		case err == nil:
			seen = append(seen, r.ResumeToken)
		case errors.Is(err, control.ErrResumeExpired):
			seen = append(seen, "anew")
		default:
			seen = append(seen, control.Reason(err))
		}
	}
	require.Equal(t, []string{"", "a", "b", "c", "anew", "", "anew", "", "d", "e", "NOT_SUPPORTED"}, seen)

	ctx, cancel := context.WithCancel(background(t))
	s.acts <- act{"", []string{"a"}, control.ErrShutdown}
	for _, err := range c.WatchDevices(ctx) {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel() // while it waits for the next try
	}
	cancel()
}
