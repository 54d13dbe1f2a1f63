package control_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

func diagnostics(t testing.TB, c *control.Client) *nfcommsv1.GetDiagnosticsResponse {
	r, err := c.Diagnostics.GetDiagnostics(background(t), &nfcommsv1.GetDiagnosticsRequest{Name: nic0})
	require.NoError(t, err)
	return r
}

func TestDiagnostics(t *testing.T) {
	_, c := serveSim(t, quick)
	r := diagnostics(t, c)
	require.Equal(t, nic0, r.Name)
	require.Equal(t, nfcommsv1.Device_STATE_READY, r.State)
	require.Nil(t, r.Failure)
	require.True(t, r.Diagnostic.Valid)
	require.Len(t, r.Diagnostic.Readings, 13)
	require.Equal(t, nfcommsv1.Level_LEVEL_NORMAL, r.Diagnostic.Worst)
	require.Less(t, r.Heartbeat.Age.AsDuration(), time.Minute)
	require.Len(t, r.Memories, abi.MemoryCount)
	for i, m := range r.Memories {
		require.EqualValues(t, i+1, m.Type)
		require.NotZero(t, m.SizeBytes)
		require.LessOrEqual(t, m.FreeBytes, m.SizeBytes)
	}
	require.NotNil(t, r.Stats)
	require.Eventually(t, func() bool { return diagnostics(t, c).Heartbeat.Beat > r.Heartbeat.Beat }, time.Minute, time.Millisecond)
}

// number fills every number below v, each with another, from next on.
func number(v reflect.Value, next *int64) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			number(v.Field(i), next)
		}
	case reflect.Array, reflect.Slice:
		for i := range v.Len() {
			number(v.Index(i), next)
		}
	case reflect.Int, reflect.Int64:
		*next++
		v.SetInt(*next)
	case reflect.Uint64:
		*next++
		v.SetUint(uint64(*next))
	}
}

// numbers collects the numbers of a message, each of which must be set.
func numbers(t *testing.T, m protoreflect.Message, found map[int64]string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		require.True(t, m.Has(f), "%s is not filled in", f.FullName())
		switch v := m.Get(f); {
		case f.IsList():
			for i := range v.List().Len() {
				numbers(t, v.List().Get(i).Message(), found)
			}
		case f.Message() != nil:
			numbers(t, v.Message(), found)
		case f.Kind() == protoreflect.Uint64Kind:
			found[int64(v.Uint())] += string(f.FullName())
		default:
			found[v.Int()] += string(f.FullName())
		}
	}
}

// TestStatsAreCarried: what a device counts is what a client reads, number by
// number, but for the profile, which is the metrics' own, and the heartbeat's age,
// which GetDiagnostics has.
func TestStatsAreCarried(t *testing.T) {
	c, dev := serveFlaky(t, quick)
	stats := bridge.Stats{Mailboxes: make([]bridge.MailboxStats, 2)}
	next := int64(1000)
	number(reflect.ValueOf(&stats).Elem(), &next)
	stats.Age, stats.Profile = 7*time.Second, new(bridge.Profile)
	dev.set(func(f *flaky) { f.stats, f.version = &stats, "1.2.3" })

	found := make(map[int64]string)
	d := getDevice(t, c, nic0)
	numbers(t, d.Stats.ProtoReflect(), found)
	require.Len(t, found, int(next)-1000-1, "all but the age: %v", found)
	require.EqualValues(t, stats.Waiting.D2H, d.Stats.Channels.WaitingD2H)
	require.EqualValues(t, stats.InFlight.H2D, d.Stats.Channels.InFlightH2D)
	require.Equal(t, stats.Indirect.D2H.Bytes, d.Stats.Channels.IndirectD2H.Bytes)
	require.EqualValues(t, stats.Mailboxes[1].Used.D2H, d.Stats.Mailboxes[1].UsedD2H)
	require.Equal(t, stats.Full, d.Stats.Full)
	require.Equal(t, stats.Spurious, d.Stats.SpuriousWakeups)
	require.Equal(t, stats.Age, diagnostics(t, c).HeartbeatAge.AsDuration())
	v, err := c.Versions.GetVersion(background(t), &nfcommsv1.GetVersionRequest{})
	require.NoError(t, err)
	require.Equal(t, "1.2.3", v.Devices[0].DriverVersion)
}

// TestDegraded: a word with a sick part degrades the device, which serves on.
func TestDegraded(t *testing.T) {
	c, dev := serveFlaky(t, quick)
	word := abi.Diagnostic(1<<31 | uint32(abi.Sick)<<abi.DiagTemperature | uint32(abi.Broken)<<abi.DiagXMinus | 3<<abi.DiagCore)
	dev.set(func(f *flaky) { f.word = word })
	eventually(t, c, nic0, nfcommsv1.Device_STATE_DEGRADED)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health(t, c, "device/nic0"))
	r := diagnostics(t, c)
	require.EqualValues(t, word, r.Diagnostic.Word)
	levels := make(map[nfcommsv1.Part]nfcommsv1.Level)
	for _, reading := range r.Diagnostic.Readings {
		if reading.Level != nfcommsv1.Level_LEVEL_NORMAL {
			levels[reading.Part] = reading.Level
		}
	}
	require.Equal(t, map[nfcommsv1.Part]nfcommsv1.Level{
		nfcommsv1.Part_PART_TEMPERATURE: nfcommsv1.Level_LEVEL_SICK,
		nfcommsv1.Part_PART_X_MINUS:     nfcommsv1.Level_LEVEL_BROKEN,
		nfcommsv1.Part_PART_CORE:        nfcommsv1.Level_LEVEL_UNKNOWN,
	}, levels)
	dev.set(func(f *flaky) { f.word = 1 << 31 })
	eventually(t, c, nic0, nfcommsv1.Device_STATE_READY)
	var said []string // nothing of the word that was well from the start
	for e, err := range c.ListEvents(background(t), nic0) {
		require.NoError(t, err)
		if e.Type == nfcommsv1.Event_TYPE_DIAGNOSTIC_CHANGED {
			said = append(said, e.Severity.String()+" "+e.Message)
		}
	}
	require.Len(t, said, 2)
	require.Contains(t, said[0], "SEVERITY_WARNING")
	require.Contains(t, said[0], "core unknown, temperature sick, x minus broken")
	require.Equal(t, "SEVERITY_INFO all parts are normal", said[1])
}

// TestMemoryThatIsUsedUpDegrades: what the firmware sees, degrades the device, until
// it sees it no more.
func TestMemoryThatIsUsedUpDegrades(t *testing.T) {
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	dev, err := nfcomms.Open(ctx, "sim:?emem=64KiB&beat=5ms")
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	srv, c := serve(t, quick)
	require.NoError(t, srv.Attach("nic0", dev))
	eventually(t, c, nic0, nfcommsv1.Device_STATE_READY)
	holder, err := dev.Start(ctx, nfcomms.Program{Name: "sink", Targets: 1})
	require.NoError(t, err)
	sink, err := dev.Subscribe(ctx, holder.First)
	require.NoError(t, err)
	loop, err := dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err)
	data := make([]byte, 40<<10)
	require.NoError(t, sink.SendInd(ctx, data))
	refused := make(chan error, 1)
	pressing, stop := context.WithCancel(ctx)
	go func() {
		err := nfcomms.ErrRange
		for pressing.Err() == nil && errors.Is(err, nfcomms.ErrRange) {
			err = loop.SendInd(ctx, data)
		}
		refused <- err
	}()
	eventually(t, c, nic0, nfcommsv1.Device_STATE_DEGRADED)
	for _, reading := range diagnostics(t, c).Diagnostic.Readings {
		if reading.Part == nfcommsv1.Part_PART_MEMORY {
			require.Equal(t, nfcommsv1.Level_LEVEL_SICK, reading.Level)
		}
	}
	stop()
	require.ErrorIs(t, <-refused, nfcomms.ErrRange)
	eventually(t, c, nic0, nfcommsv1.Device_STATE_READY)
}

// TestLost: a device that does not answer fails, says why, and may return.
func TestLost(t *testing.T) {
	c, dev := serveFlaky(t, quick)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health(t, c, "device/nic0"))
	dev.set(func(f *flaky) { f.lost = bridge.ErrDeviceLost })
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, health(t, c, "device/nic0"), "the check itself finds it")
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, health(t, c, ""))
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, health(t, c, "nfcomms.v1.MessageService"))
	d := getDevice(t, c, nic0)
	require.Equal(t, nfcommsv1.Device_STATE_FAILED, d.State)
	require.Equal(t, "DEVICE_LOST", d.Failure.Reason)
	r := diagnostics(t, c)
	require.Equal(t, "DEVICE_LOST", r.Failure.Reason)
	require.Nil(t, r.Heartbeat)
	require.NotNil(t, r.HeartbeatAge)
	require.NotNil(t, r.Stats)
	list, err := c.Health.List(background(t), &healthpb.HealthListRequest{})
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, list.Statuses["device/nic0"].Status)
	require.Len(t, list.Statuses, 1+6+1)

	dev.set(func(f *flaky) { f.reset = bridge.ErrDeviceLost })
	_, err = c.Devices.ResetDevice(background(t), &nfcommsv1.ResetDeviceRequest{Name: nic0})
	require.ErrorIs(t, err, nfcomms.ErrDeviceLost)
	dev.set(func(f *flaky) { f.lost, f.reset = nil, nil })
	reset, err := c.Devices.ResetDevice(background(t), &nfcommsv1.ResetDeviceRequest{Name: nic0})
	require.NoError(t, err)
	require.Equal(t, nfcommsv1.Device_STATE_READY, reset.Device.State)
	require.Nil(t, reset.Device.Failure)
}

// TestCheckIsFresh: what a check answers is what it found itself, however soon
// after a change.
func TestCheckIsFresh(t *testing.T) {
	c, dev := serveFlaky(t, quick)
	for range 300 {
		dev.set(func(f *flaky) { f.lost = bridge.ErrDeviceLost })
		require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, health(t, c, "device/nic0"))
		dev.set(func(f *flaky) { f.lost = nil })
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, health(t, c, "device/nic0"))
	}
}

// TestOpensLater: a device that could not be opened is opened when it can be.
func TestOpensLater(t *testing.T) {
	srv, c := serve(t, quick)
	unopened.Store(t.Name(), bridge.ErrNotSupported)
	require.NoError(t, srv.Open(background(t), "nic0", "flaky:"+t.Name()))
	require.Equal(t, nfcommsv1.Device_STATE_FAILED, getDevice(t, c, nic0).State)
	unopened.Delete(t.Name())
	eventually(t, c, nic0, nfcommsv1.Device_STATE_READY)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, health(t, c, "device/nic0"))
}

func TestPing(t *testing.T) {
	srv, c := serve(t, quick)
	dev := open(t, "sim:")
	require.NoError(t, srv.Attach("nic0", dev))
	ask := func() (*nfcommsv1.PingDeviceResponse, error) {
		return c.Diagnostics.PingDevice(background(t), &nfcommsv1.PingDeviceRequest{Name: nic0})
	}
	var last uint64
	for range 3 {
		r, err := ask()
		require.NoError(t, err)
		require.Positive(t, r.RoundTrip.AsDuration())
		require.LessOrEqual(t, r.DeviceReceiveNs, r.DeviceSendNs)
		require.Greater(t, r.DeviceReceiveNs, last, "the device's clock goes on")
		last = r.DeviceSendNs
	}
	failed := make(chan error)
	for range 8 {
		go func() { _, err := ask(); failed <- err }()
	}
	for range 8 {
		require.NoError(t, <-failed, "pings take turns")
	}
	_, err := dev.Subscribe(background(t), admin.Time)
	require.NoError(t, err)
	_, err = ask()
	require.ErrorIs(t, err, nfcomms.ErrBusy)
}

func TestHealthWatch(t *testing.T) {
	c, dev := serveFlaky(t, quick)
	s, err := c.Health.Watch(background(t), &healthpb.HealthCheckRequest{Service: "device/nic0"})
	require.NoError(t, err)
	next := func() healthpb.HealthCheckResponse_ServingStatus {
		r, err := s.Recv()
		require.NoError(t, err)
		return r.Status
	}
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, next())
	dev.set(func(f *flaky) { f.lost = bridge.ErrFault })
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, next())
	dev.set(func(f *flaky) { f.lost = nil })
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, next())
	unknown, err := c.Health.Watch(background(t), &healthpb.HealthCheckRequest{Service: "device/none"})
	require.NoError(t, err)
	r, err := unknown.Recv()
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVICE_UNKNOWN, r.Status)
	_, err = c.Health.Check(background(t), &healthpb.HealthCheckRequest{Service: "device/none"})
	require.ErrorContains(t, err, "unknown service")
	_, err = c.Health.Check(background(t), &healthpb.HealthCheckRequest{Service: "none"})
	require.ErrorContains(t, err, "unknown service")
}
