package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// often is the interval of the watches here.
var often = durationpb.New(10 * time.Millisecond)

// watchLatency returns the first response, or why there is none.
func watchLatency(ctx context.Context, c *control.Client, req *nfcommsv1.WatchLatencyRequest) (*nfcommsv1.WatchLatencyResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.Diagnostics.WatchLatency(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.Recv()
}

// TestWatchLatency: a watcher sees the application's calls layer by layer, and leaves its place to
// the next.
func TestWatchLatency(t *testing.T) {
	srv, c := serve(t, quick)
	ctx := background(t)
	dev, err := nfcomms.Open(ctx, "sim:")
	require.NoError(t, err)
	defer dev.Close()
	require.NoError(t, srv.Attach("nic0", dev))
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err)
	watching, stop := context.WithCancel(ctx)
	s, err := c.Diagnostics.WatchLatency(watching, &nfcommsv1.WatchLatencyRequest{Name: nic0, Every: 1, Interval: often})
	require.NoError(t, err)
	for calls := 0; calls == 0; {
		require.NoError(t, ch.SendInd(ctx, make([]byte, 100)))
		_, err := ch.ReceiveInd(ctx, make([]byte, 100))
		require.NoError(t, err)
		r, err := s.Recv()
		require.NoError(t, err)
		for _, w := range r.Waterfalls {
			calls += int(w.Calls)
			require.Contains(t, []string{"send transfer", "receive transfer"}, w.Operation)
			require.Equal(t, 100*w.Calls, w.Bytes)
			var mean time.Duration
			for _, l := range w.Layers {
				require.NotZero(t, l.Layer)
				mean += l.Times.Mean.AsDuration()
			}
			require.InDelta(t, w.Whole.Mean.AsDuration(), mean, float64(len(w.Layers)))
		}
	}
	stop()
	for err == nil {
		_, err = s.Recv()
	}
	require.ErrorIs(t, err, context.Canceled)
	for range trace.MaxTracers {
		free := func() bool { _, err := trace.Start(ctx, dev, trace.Options{}); return err == nil }
		require.Eventually(t, free, time.Minute, time.Millisecond)
	}
	_, err = watchLatency(ctx, c, &nfcommsv1.WatchLatencyRequest{Name: nic0})
	require.ErrorIs(t, err, nfcomms.ErrBusy)
}

// TestWatchLatencyEnds: with the device's listing, and with the server.
func TestWatchLatencyEnds(t *testing.T) {
	srv, c := serveSim(t, quick)
	require.NoError(t, srv.Open(background(t), "nic1", "sim:"))
	watch := func(name string) func() error {
		s, err := c.Diagnostics.WatchLatency(background(t), &nfcommsv1.WatchLatencyRequest{Name: name, Interval: often})
		require.NoError(t, err)
		_, err = s.Recv()
		require.NoError(t, err)
		return func() (err error) {
			for err == nil {
				_, err = s.Recv()
			}
			return err
		}
	}
	one, other := watch(nic0), watch("devices/nic1")
	require.NoError(t, srv.Remove("nic1"))
	require.ErrorIs(t, other(), control.ErrNotOpen)
	require.NoError(t, srv.Shutdown(background(t)))
	require.ErrorIs(t, one(), control.ErrShutdown)
}
