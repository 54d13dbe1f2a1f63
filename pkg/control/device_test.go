package control_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

const (
	nic0     = "devices/nic0"
	loopback = "devices/nic0/channels/1"
)

// getDevice returns a device as the server shows it.
func getDevice(t testing.TB, c *control.Client, name string) *nfcommsv1.Device {
	r, err := c.Devices.GetDevice(background(t), &nfcommsv1.GetDeviceRequest{Name: name})
	require.NoError(t, err)
	return r.Device
}

// eventually waits until a device is in a state.
func eventually(t testing.TB, c *control.Client, name string, want nfcommsv1.Device_State) {
	ctx := background(t)
	for r, err := range c.WatchDevices(ctx) {
		require.NoError(t, err, "waiting for %v", want)
		if r.GetDevice().GetName() == name && r.Device.State == want && r.Change != nfcommsv1.Change_CHANGE_DELETED {
			return
		}
	}
}

func openChannel(t testing.TB, c *control.Client, name string) *nfcommsv1.Channel {
	r, err := c.Channels.OpenChannel(background(t), &nfcommsv1.OpenChannelRequest{Name: name})
	require.NoError(t, err)
	return r.Channel
}

func health(t testing.TB, c *control.Client, service string) healthpb.HealthCheckResponse_ServingStatus {
	r, err := c.Health.Check(background(t), &healthpb.HealthCheckRequest{Service: service})
	require.NoError(t, err)
	return r.Status
}

func TestDeviceIsDescribed(t *testing.T) {
	srv, c := serveSim(t, quick)
	dev := open(t, "sim:")
	require.NoError(t, srv.Attach("app", dev))
	info := dev.Info()

	d := getDevice(t, c, "devices/app")
	require.Equal(t, nfcommsv1.Device_STATE_READY, d.State)
	require.Equal(t, "sim:", d.Address)
	require.Equal(t, "sim", d.Driver)
	require.False(t, d.Owned)
	require.EqualValues(t, info.Major, d.AbiMajor)
	require.EqualValues(t, info.Minor, d.AbiMinor)
	require.Equal(t, info.Epoch, d.Epoch)
	require.EqualValues(t, info.Channels, d.Shape.Channels)
	require.EqualValues(t, info.Window, d.Shape.Window)
	require.Equal(t, info.MaxTransfer, d.Shape.MaxTransferBytes)
	require.Equal(t, info.Beat, d.Shape.HeartbeatInterval.AsDuration())
	require.NotNil(t, d.Stats)
	require.True(t, getDevice(t, c, nic0).Owned)

	open := make(map[string]*nfcomms.Device)
	for name, dev := range srv.Devices() {
		open[name] = dev
	}
	require.Len(t, open, 2)
	require.Same(t, dev, open["app"])
	for name, state := range srv.States() {
		require.Contains(t, open, name)
		require.Equal(t, nfcommsv1.Device_STATE_READY, state)
	}

	v, err := c.Versions.GetVersion(background(t), &nfcommsv1.GetVersionRequest{})
	require.NoError(t, err)
	require.Contains(t, v.Schemes, "sim")
	require.True(t, strings.HasPrefix(v.GoVersion, "go"))
	require.Len(t, v.Devices, 2)
	require.Equal(t, "devices/app", v.Devices[0].Name)
	require.EqualValues(t, info.Major, v.Devices[0].AbiMajor)
}

// TestNames: what Attach and Open refuse.
func TestNames(t *testing.T) {
	srv, _ := serveSim(t, quick)
	dev := open(t, "sim:")
	for _, name := range []string{"", "-", "A", "a/b", "a-", "ä", strings.Repeat("a", 64)} {
		require.ErrorIs(t, srv.Attach(name, dev), nfcomms.ErrInvalid, name)
		require.ErrorIs(t, srv.Open(background(t), name, "sim:"), nfcomms.ErrInvalid, name)
	}
	require.ErrorIs(t, srv.Attach("nic0", dev), nfcomms.ErrBusy)
	require.NoError(t, srv.Attach(strings.Repeat("a", 63), dev))
	require.ErrorIs(t, srv.Remove("none"), control.ErrNoDevice)
}

// TestOpenThatFails: the device is listed with its error, the others are served.
func TestOpenThatFails(t *testing.T) {
	var log journal
	o := quick
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	srv, c := serveSim(t, o)
	require.NoError(t, srv.Open(background(t), "bad", "sim:?colour=red"))
	d := getDevice(t, c, "devices/bad")
	require.Equal(t, nfcommsv1.Device_STATE_FAILED, d.State)
	require.Equal(t, "OPTION", d.Failure.Reason)
	require.Contains(t, d.Failure.Message, "colour")
	require.True(t, d.Owned)

	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, health(t, c, "device/bad"))
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health(t, c, "device/nic0"))
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health(t, c, ""), "one device serves")
	_, err := c.Channels.OpenChannel(background(t), &nfcommsv1.OpenChannelRequest{Name: "devices/bad/channels/1"})
	require.ErrorIs(t, err, control.ErrNotOpen)
	require.ErrorContains(t, err, "colour", "it says why")

	var told []string
	for r, err := range c.WatchEvents(background(t), "devices/bad") {
		require.NoError(t, err)
		if r.GetEvent().GetType() == nfcommsv1.Event_TYPE_OPEN_FAILED {
			if told = append(told, r.GetEvent().Message); len(told) == 3 {
				break // it continues trying
			}
		}
	}
	require.Equal(t, []string{d.Failure.Message, d.Failure.Message + " (2 times)", d.Failure.Message + " (4 times)"}, told)
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "open failed") {
			require.Equal(t, strings.Count(d.Failure.Message, "colour=red"), strings.Count(line, "colour=red"), "once: %s", line)
		}
	}
	require.NoError(t, srv.Remove("nic0"))
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, health(t, c, ""), "none serves")
	require.NoError(t, srv.Remove("bad"))
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health(t, c, ""), "there is none")
}

// TestApplicationCloses: the end of an application's device ends its listing.
func TestApplicationCloses(t *testing.T) {
	srv, c := serve(t, quick)
	dev := open(t, "sim:")
	require.NoError(t, srv.Attach("app", dev))
	ctx := background(t)
	closed := false
	for r, err := range c.WatchDevices(ctx) {
		require.NoError(t, err)
		if r.Change == nfcommsv1.Change_CHANGE_SYNCED {
			closed = true
			require.NoError(t, dev.Close())
		}
		if r.Change == nfcommsv1.Change_CHANGE_DELETED {
			require.True(t, closed)
			require.Equal(t, "devices/app", r.Device.Name)
			break
		}
	}
	_, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: "devices/app"})
	require.ErrorIs(t, err, control.ErrNoDevice)
	_, err = c.Health.Check(ctx, &healthpb.HealthCheckRequest{Service: "device/app"})
	require.ErrorContains(t, err, "unknown service")
}

func TestReset(t *testing.T) {
	_, c := serveSim(t, quick)
	before := getDevice(t, c, nic0)
	openChannel(t, c, loopback)
	pending := make(chan error, 1)
	go func() { _, err := c.Receive(background(t), loopback); pending <- err }()
	waitForReceives(t, c, 1)
	r, err := c.Devices.ResetDevice(background(t), &nfcommsv1.ResetDeviceRequest{Name: nic0})
	require.NoError(t, err)
	require.Equal(t, nfcommsv1.Device_STATE_READY, r.Device.State)
	require.Equal(t, before.Epoch+1, r.Device.Epoch)
	require.ErrorIs(t, <-pending, nfcomms.ErrDeviceLost)
	_, err = c.Channels.GetChannel(background(t), &nfcommsv1.GetChannelRequest{Name: loopback})
	require.ErrorIs(t, err, nfcomms.ErrNotSubscribed, "the reset ended it")
	openChannel(t, c, loopback)
	require.Contains(t, eventTypes(t, c), nfcommsv1.Event_TYPE_RESET)
}

// waitForReceives waits until n calls wait to receive on the loopback channel.
func waitForReceives(t testing.TB, c *control.Client, n int32) {
	require.Eventually(t, func() bool {
		r, err := c.Channels.GetChannel(background(t), &nfcommsv1.GetChannelRequest{Name: loopback})
		require.NoError(t, err)
		return r.Channel.Stats.WaitingD2H == n
	}, time.Minute, time.Millisecond)
}

func eventTypes(t testing.TB, c *control.Client) []nfcommsv1.Event_Type {
	var list []nfcommsv1.Event_Type
	for e, err := range c.ListEvents(background(t), nic0) {
		require.NoError(t, err)
		list = append(list, e.Type)
	}
	return list
}

func TestDrain(t *testing.T) {
	_, c := serveSim(t, quick)
	ctx := background(t)
	openChannel(t, c, loopback)
	openChannel(t, c, "devices/nic0/channels/2")
	pending := make(chan error, 1)
	go func() { _, err := c.Receive(ctx, loopback); pending <- err }()
	waitForReceives(t, c, 1)

	drain := func(timeout time.Duration) *nfcommsv1.DrainDeviceResponse {
		r, err := c.Devices.DrainDevice(ctx, &nfcommsv1.DrainDeviceRequest{Name: nic0, Timeout: durationpb.New(timeout)})
		require.NoError(t, err)
		return r
	}
	r := drain(0)
	require.False(t, r.Drained)
	require.EqualValues(t, 1, r.RunningCalls)
	require.EqualValues(t, 1, r.OpenChannels, "the quiet one is closed")
	require.Equal(t, nfcommsv1.Device_STATE_DRAINING, r.Device.State)

	for name, call := range drainedCalls(c) {
		require.ErrorIs(t, call(ctx), control.ErrDraining, name)
	}
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, health(t, c, "device/nic0"))

	drained := make(chan *nfcommsv1.DrainDeviceResponse, 1)
	go func() { drained <- drain(time.Minute) }()
	_, err := c.Channels.CloseChannel(ctx, &nfcommsv1.CloseChannelRequest{Name: loopback})
	require.NoError(t, err)
	require.ErrorIs(t, <-pending, nfcomms.ErrClosed)
	r = <-drained
	require.True(t, r.Drained)
	require.Zero(t, r.OpenChannels)
	require.Equal(t, nfcommsv1.Device_STATE_DRAINED, r.Device.State)

	resumed, err := c.Devices.ResumeDevice(ctx, &nfcommsv1.ResumeDeviceRequest{Name: nic0})
	require.NoError(t, err)
	require.Equal(t, nfcommsv1.Device_STATE_READY, resumed.Device.State)
	openChannel(t, c, loopback)
	types := eventTypes(t, c)
	for _, want := range []nfcommsv1.Event_Type{
		nfcommsv1.Event_TYPE_DRAIN_STARTED, nfcommsv1.Event_TYPE_DRAIN_TIMEOUT,
		nfcommsv1.Event_TYPE_DRAINED, nfcommsv1.Event_TYPE_RESUMED,
	} {
		require.Contains(t, types, want)
	}
}

// drainedCalls are the calls that a drain refuses.
func drainedCalls(c *control.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"open": func(ctx context.Context) error {
			_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: "devices/nic0/channels/3"})
			return err
		},
		"send":    func(ctx context.Context) error { return c.Send(ctx, loopback, nil) },
		"receive": func(ctx context.Context) error { _, err := c.Receive(ctx, loopback); return err },
		"start": func(ctx context.Context) error {
			_, err := c.Devices.StartProgram(ctx, &nfcommsv1.StartProgramRequest{Name: "devices/nic0/programs/loopback"})
			return err
		},
		"load": func(ctx context.Context) error {
			_, err := c.LoadProgram(ctx, &nfcommsv1.LoadProgramHeader{Parent: nic0, SizeBytes: 1}, strings.NewReader("x"), nil)
			return err
		},
	}
}

// TestDrainWaitsForTheApplication: only the application closes its channels.
func TestDrainWaitsForTheApplication(t *testing.T) {
	srv, c := serve(t, quick)
	dev := open(t, "sim:")
	require.NoError(t, srv.Attach("nic0", dev))
	ch, err := dev.Subscribe(background(t), nfcomms.Loopback)
	require.NoError(t, err)
	ctx := background(t)
	drained := make(chan error, 1)
	go func() {
		r, err := c.Devices.DrainDevice(ctx, &nfcommsv1.DrainDeviceRequest{Name: nic0})
		if err == nil && !r.Drained {
			err = context.DeadlineExceeded
		}
		drained <- err
	}()
	eventually(t, c, nic0, nfcommsv1.Device_STATE_DRAINING)
	require.NoError(t, ch.Close())
	require.NoError(t, <-drained)

	_, err = dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err, "a drain does not hold the application")
	resume := func() {
		_, err = c.Devices.ResumeDevice(ctx, &nfcommsv1.ResumeDeviceRequest{Name: nic0})
		require.NoError(t, err)
	}
	resume()
	eventually(t, c, nic0, nfcommsv1.Device_STATE_READY)
	go func() {
		_, err := c.Devices.DrainDevice(ctx, &nfcommsv1.DrainDeviceRequest{Name: nic0})
		drained <- err
	}()
	eventually(t, c, nic0, nfcommsv1.Device_STATE_DRAINING)
	resume()
	require.ErrorIs(t, <-drained, nfcomms.ErrAborted)
}

// TestEventsOfADevice: the changes of a device and its channels are events, in order,
// and stay so when the device is lost.
func TestEventsOfADevice(t *testing.T) {
	srv, c := serveSim(t, quick)
	openChannel(t, c, loopback)
	_, err := c.Channels.CloseChannel(background(t), &nfcommsv1.CloseChannelRequest{Name: loopback})
	require.NoError(t, err)
	require.NoError(t, srv.Remove("nic0"))
	unopened.Store(t.Name(), nfcomms.ErrNoMemory)
	require.NoError(t, srv.Open(background(t), "bad", "flaky:"+t.Name()))
	const info, bad = nfcommsv1.Event_SEVERITY_INFO, nfcommsv1.Event_SEVERITY_ERROR
	want := []struct {
		kind     nfcommsv1.Event_Type
		severity nfcommsv1.Event_Severity
		resource string
	}{
		{nfcommsv1.Event_TYPE_DEVICE_ADDED, info, nic0},
		{nfcommsv1.Event_TYPE_STATE_CHANGED, info, nic0}, // opening
		{nfcommsv1.Event_TYPE_STATE_CHANGED, info, nic0}, // ready
		{nfcommsv1.Event_TYPE_CHANNEL_OPENED, info, loopback},
		{nfcommsv1.Event_TYPE_CHANNEL_CLOSED, info, loopback},
		{nfcommsv1.Event_TYPE_DEVICE_REMOVED, info, nic0},
		{nfcommsv1.Event_TYPE_DEVICE_ADDED, info, "devices/bad"},
		{nfcommsv1.Event_TYPE_STATE_CHANGED, info, "devices/bad"},
		{nfcommsv1.Event_TYPE_OPEN_FAILED, bad, "devices/bad"},
		{nfcommsv1.Event_TYPE_STATE_CHANGED, bad, "devices/bad"}, // failed
	}
	r, err := c.Events.ListEvents(background(t), &nfcommsv1.ListEventsRequest{Parent: control.AllDevices})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(r.Events), len(want)) // the device is tried again
	for i, w := range want {
		e := r.Events[i]
		require.Equal(t, w.kind, e.Type, "event %d: %v", i, e)
		require.Equal(t, w.severity, e.Severity, "event %d: %v", i, e)
		require.Equal(t, w.resource, e.Resource, "event %d: %v", i, e)
		require.Equal(t, w.severity == bad, e.Failure.GetReason() == "NO_MEMORY", "event %d: %v", i, e)
	}
}
