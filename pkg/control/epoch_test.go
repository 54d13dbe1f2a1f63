package control_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// theChannel returns an open channel as the server shows it.
func theChannel(t testing.TB, c *control.Client, name string) *nfcommsv1.Channel {
	r, err := c.Channels.GetChannel(background(t), &nfcommsv1.GetChannelRequest{Name: name})
	require.NoError(t, err)
	return r.Channel
}

// TestOpenChannelMeetsAReset: a client does not get the channel that the application opened at the
// same target after a reset.
func TestOpenChannelMeetsAReset(t *testing.T) {
	c, app, dev := attachFlaky(t, quick)
	dev.set(func(f *flaky) {
		f.met = func() {
			_ = app.Reset(background(t))
			_, _ = app.Subscribe(background(t), nfcomms.Loopback) // the check below finds it
		}
	})
	_, err := c.Channels.OpenChannel(background(t), &nfcommsv1.OpenChannelRequest{Name: loopback})
	require.ErrorIs(t, err, nfcomms.ErrDeviceLost)
	require.Equal(t, nfcommsv1.Channel_OWNER_APPLICATION, theChannel(t, c, loopback).Owner)
}

// TestChannelsOfTwoEpochs: a channel that was opened anew after a reset is another one.
func TestChannelsOfTwoEpochs(t *testing.T) {
	c, app, _ := attachFlaky(t, quick)
	_, err := app.Subscribe(background(t), nfcomms.Loopback)
	require.NoError(t, err)
	before := theChannel(t, c, loopback)
	require.NoError(t, app.Reset(background(t)))
	_, err = app.Subscribe(background(t), nfcomms.Loopback)
	require.NoError(t, err)
	after := theChannel(t, c, loopback)
	require.True(t, after.CreateTime.AsTime().After(before.CreateTime.AsTime()))
	for r, err := range c.WatchChannels(background(t), nic0) {
		require.NoError(t, err)
		require.Equal(t, after.CreateTime.AsTime(), r.GetChannel().CreateTime.AsTime())
		break
	}
}

// TestChannelsOfAnEpochLeaveTheirPlaces: those that a reset ended take no place from later ones.
func TestChannelsOfAnEpochLeaveTheirPlaces(t *testing.T) {
	o := quick
	o.MaxChannels = 1
	c, app, _ := attachFlaky(t, o)
	openChannel(t, c, loopback)
	require.NoError(t, app.Reset(background(t)))
	openChannel(t, c, control.ChannelName("nic0", admin.Telemetry))
}

// TestCheckMeetsAReset: a check whose epoch a reset ended asks the next one.
func TestCheckMeetsAReset(t *testing.T) {
	c, app, dev := attachFlaky(t, quick)
	dev.set(func(f *flaky) {
		f.asked = func() error {
			return errors.Join(app.Reset(background(t)), bridge.ErrReset)
		}
	})
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health(t, c, "device/nic0"))
	require.Equal(t, nfcommsv1.Device_STATE_READY, getDevice(t, c, nic0).State)
}

// TestOpenChannelTwice: a channel stays whose it is while a client fails to open it again.
func TestOpenChannelTwice(t *testing.T) {
	c, app, dev := attachFlaky(t, quick)
	telemetry := control.ChannelName("nic0", admin.Telemetry)
	_, err := app.Subscribe(background(t), admin.Telemetry)
	require.NoError(t, err)
	openChannel(t, c, loopback)
	for _, name := range []string{loopback, telemetry} {
		before := theChannel(t, c, name)
		var during *nfcommsv1.GetChannelResponse
		dev.set(func(f *flaky) {
			f.met = func() {
				during, _ = c.Channels.GetChannel(background(t), &nfcommsv1.GetChannelRequest{Name: name})
			}
		})
		_, err := c.Channels.OpenChannel(background(t), &nfcommsv1.OpenChannelRequest{Name: name})
		require.ErrorIs(t, err, nfcomms.ErrBusy)
		require.Equal(t, before.CreateTime.AsTime(), during.GetChannel().GetCreateTime().AsTime())
		require.Equal(t, before.Owner, theChannel(t, c, name).Owner)
	}
	require.NoError(t, c.Send(background(t), loopback, nil))
}
