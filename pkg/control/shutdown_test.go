package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// parkedReceive begins a ReceiveMessage that nothing answers, and returns where
// its outcome will be.
func parkedReceive(t *testing.T, c *control.Client) <-chan error {
	openChannel(t, c, loopback)
	out := make(chan error, 1)
	go func() {
		_, err := c.Messages.ReceiveMessage(background(t), &nfcommsv1.ReceiveMessageRequest{Name: loopback})
		out <- err
	}()
	waitForReceives(t, c, 1)
	return out
}

// TestShutdownWaits: what runs may continue, what is new is refused.
func TestShutdownWaits(t *testing.T) {
	srv, c := serveSim(t, quick)
	received := parkedReceive(t, c)
	over := make(chan error, 1)
	go func() { over <- srv.Shutdown(background(t)) }()

	require.Eventually(t, func() bool {
		return health(t, c, "") == healthpb.HealthCheckResponse_NOT_SERVING
	}, time.Minute, time.Millisecond)
	_, err := c.Devices.ListDevices(background(t), &nfcommsv1.ListDevicesRequest{})
	require.ErrorIs(t, err, control.ErrShutdown)

	// The device is still there, so that the call can end.
	for _, dev := range srv.Devices() {
		ch, err := dev.Subscribe(background(t), nfcomms.Loopback)
		require.ErrorIs(t, err, nfcomms.ErrBusy, "%v", ch)
	}
	select {
	case err := <-over:
		t.Fatal("over while a call ran: ", err)
	case err := <-received:
		t.Fatal("ended: ", err)
	default:
	}
	for _, dev := range srv.Devices() {
		if err := dev.Reset(background(t)); err != nil { // the call ends before the reset does, and then the device
			require.ErrorIs(t, err, nfcomms.ErrClosed)
		}
	}
	require.ErrorIs(t, <-received, nfcomms.ErrDeviceLost)
	require.NoError(t, <-over)
	require.ErrorIs(t, srv.Remove("nic0"), control.ErrShutdown, "nobody removed the device")
}

// TestShutdownIsBounded: with the context ends the patience.
func TestShutdownIsBounded(t *testing.T) {
	srv, c := serveSim(t, quick)
	received := parkedReceive(t, c)
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	require.ErrorIs(t, srv.Shutdown(ctx), context.Canceled)
	require.NoError(t, srv.Shutdown(background(t)), "the rest goes on")
	require.ErrorIs(t, <-received, nfcomms.ErrClosed)
}
