package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

const loopbackChannel = "devices/sim0/channels/1"

// park begins a ReceiveMessage that nothing answers, and returns where its
// outcome will be once it waits on the device.
func park(t *testing.T, c *control.Client, timeout time.Duration) <-chan error {
	ctx := deadline(t)
	_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: loopbackChannel})
	require.NoError(t, err)
	out := make(chan error, 1)
	go func() {
		_, err := c.Messages.ReceiveMessage(ctx, &nfcommsv1.ReceiveMessageRequest{
			Name: loopbackChannel, Timeout: durationpb.New(timeout)})
		out <- err
	}()
	require.Eventually(t, func() bool {
		d, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: "devices/sim0"})
		return err == nil && d.GetDevice().GetStats().GetBlockedCalls() > 0
	}, patience, 5*time.Millisecond)
	return out
}

// TestDrain: on SIGTERM health says NOT_SERVING, watches end with a status to
// resume from, new calls are refused, and a running one ends by itself.
func TestDrain(t *testing.T) {
	p := start(t, "--drain-timeout", "90s")
	c := p.client()
	watch, err := c.Devices.WatchDevices(deadline(t), &nfcommsv1.WatchDevicesRequest{})
	require.NoError(t, err)
	for m, err := watch.Recv(); m.GetChange() != nfcommsv1.Change_CHANGE_SYNCED; m, err = watch.Recv() {
		require.NoError(t, err)
	}
	healthWatch, err := c.Health.Watch(deadline(t), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	first, err := healthWatch.Recv()
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, first.Status)
	received := park(t, c, time.Second)

	p.signal(syscall.SIGTERM)
	p.await("STOPPING=1")
	for err == nil {
		_, err = watch.Recv()
	}
	require.ErrorIs(t, err, control.ErrShutdown)
	next, err := healthWatch.Recv()
	require.NoError(t, err)
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, next.Status)
	_, err = c.Devices.ListDevices(deadline(t), &nfcommsv1.ListDevicesRequest{})
	require.ErrorIs(t, err, control.ErrShutdown)
	require.ErrorIs(t, <-received, nfcomms.ErrWithdrawn, "it ran to its own end")
	require.Zero(t, p.end())
	require.NotContains(t, p.log.String(), "running calls are ended")
}

// TestDrainDeadline: what does not end is ended, by the deadline and by a second
// signal.
func TestDrainDeadline(t *testing.T) {
	for name, second := range map[string]bool{"deadline": false, "second signal": true} {
		drain := map[bool]string{false: "200ms", true: "1h"}[second]
		p := start(t, "--drain-timeout", drain)
		received := park(t, p.client(), time.Hour)
		p.signal(syscall.SIGTERM)
		p.await("STOPPING=1")
		if second {
			p.signal(syscall.SIGTERM)
		}
		err := <-received
		require.ErrorIs(t, err, nfcomms.ErrClosed, name)
		require.Zero(t, p.end(), name)
		require.Contains(t, p.log.String(), "running calls are ended", name)
	}
}

// names lists the devices as a client sees them.
func names(t testing.TB, c *control.Client) []string {
	list, err := c.Devices.ListDevices(deadline(t), &nfcommsv1.ListDevicesRequest{})
	require.NoError(t, err)
	var all []string
	for _, d := range list.Devices {
		all = append(all, strings.TrimPrefix(d.Name, "devices/")+" "+d.Address)
	}
	return all
}

// TestReload: devices, roles and log level change in place; what stays is not
// touched; what needs a restart is said; a bad file changes nothing.
func TestReload(t *testing.T) {
	const before = "devices:\n  keep: \"sim:\"\n  drop: \"sim:\"\n  move: \"sim:\"\nlog:\n  level: debug\n"
	p := newProcess(t)
	me := os.Geteuid()
	file := p.file("c.yaml", before+fmt.Sprintf("roles:\n  admin: [uid:%d]\n", me))
	p.args = []string{"--config", file, "--socket-path", p.socket}
	p.run()
	p.await("READY=1")
	c := p.client()
	require.Equal(t, []string{"drop sim:", "keep sim:", "move sim:"}, names(t, c))
	_, err := c.Channels.OpenChannel(deadline(t), &nfcommsv1.OpenChannelRequest{Name: "devices/keep/channels/1"})
	require.NoError(t, err)

	p.file("c.yaml", "devices:\n  keep: \"sim:\"\n  move: \"sim:?managers=2\"\n  new: \"sim:\"\nlog:\n  level: info\n"+
		fmt.Sprintf("roles:\n  admin: []\n  viewer: [uid:%d]\nlimits:\n  streams: 5\n", me)+"  connections: 6\n")
	p.signal(syscall.SIGHUP)
	p.await("RELOADING=1")
	p.await("READY=1")
	require.Equal(t, []string{"keep sim:", "move sim:?managers=2", "new sim:"}, names(t, c))
	ch, err := c.Channels.GetChannel(deadline(t), &nfcommsv1.GetChannelRequest{Name: "devices/keep/channels/1"})
	require.NoError(t, err, "the device that stayed kept its channel")
	require.Equal(t, "devices/keep/channels/1", ch.Channel.Name)
	p.logged(`settings="[limits.connections limits.streams]"`)
	_, err = c.Devices.ResetDevice(deadline(t), &nfcommsv1.ResetDeviceRequest{Name: "devices/keep"})
	require.Equal(t, codes.PermissionDenied, status.Code(err), "the role is lower now: %v", err)
	require.ErrorIs(t, err, fs.ErrPermission)

	p.file("c.yaml", "devices: {}\nbogus: 1\n")
	p.signal(syscall.SIGHUP)
	p.await("RELOADING=1")
	p.await("READY=1")
	p.logged(`unknown key \"bogus\"`)
	require.Len(t, names(t, c), 3, "nothing changed")
	p.stop()
}

// TestReloadEndsStreams: who loses the role loses the watch.
func TestReloadEndsStreams(t *testing.T) {
	p := newProcess(t)
	file := p.file("c.yaml", fmt.Sprintf("roles:\n  viewer: [uid:%d]\n", os.Geteuid()))
	p.args = append(p.args, "--config", file)
	p.run()
	p.await("READY=1")
	c := p.client()
	watch, err := c.Events.WatchEvents(deadline(t), &nfcommsv1.WatchEventsRequest{Parent: control.AllDevices})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)
	p.file("c.yaml", "roles:\n  admin: []\n")
	p.signal(syscall.SIGHUP)
	for err == nil {
		_, err = watch.Recv()
	}
	require.Equal(t, codes.PermissionDenied, status.Code(err), err)
	p.stop()
}

// TestKilledUnderLoad: kill -9 gives every client a typed error; the next daemon
// takes the socket over, and the same clients continue.
func TestKilledUnderLoad(t *testing.T) {
	p := start(t)
	for range 1 + *soakFor/(20*time.Second) {
		killUnderLoad(t, p)
	}
	require.Equal(t, []string{"sim0 sim:"}, names(t, p.client()))
	p.stop()
	left, err := os.ReadDir(filepath.Dir(p.socket))
	require.NoError(t, err)
	for _, f := range left {
		require.Contains(t, []string{"notify", "s.lock"}, f.Name(), "what a daemon leaves behind")
	}
}

// killUnderLoad kills a daemon that several clients use, and starts the next.
func killUnderLoad(t *testing.T, p *process) {
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	const clients = 8
	out := make(chan outcome, clients)
	running := make(chan struct{}, clients)
	down, restarted := context.WithCancel(ctx)
	defer restarted()
	for range clients {
		go func() {
			c, err := control.Dial("unix://" + p.socket)
			if err != nil {
				out <- outcome{err: err}
				return
			}
			defer c.Close()
			out <- hammer(ctx, down, c, running)
		}()
	}
	for range clients {
		<-running
	}
	p.signal(syscall.SIGKILL)
	p.end()
	_, err := os.Lstat(p.socket)
	require.NoError(t, err, "the socket is left behind")

	p.run()
	p.await("READY=1")
	restarted()
	failed := 0
	for range clients {
		select {
		case o := <-out:
			if o.err != nil {
				require.ErrorIs(t, o.err, control.ErrUnavailable)
				failed++
			}
			require.True(t, o.again)
		case <-time.After(patience):
			t.Fatalf("a client did not come back:\n%s", p.log.String())
		}
	}
	require.NotZero(t, failed, "clients that noticed")
}

// outcome is what a client saw of a daemon that was killed.
type outcome struct {
	err   error // the first; nil if it was idle all the while
	again bool  // it continued afterwards
}

// hammer calls until one call fails or the daemon was restarted, which ends down,
// and then until one succeeds.
func hammer(ctx, down context.Context, c *control.Client, running chan<- struct{}) (o outcome) {
	call := func() {
		_, o.err = c.Channels.ListChannels(ctx, &nfcommsv1.ListChannelsRequest{Parent: "devices/sim0"})
	}
	call()
	running <- struct{}{}
	for o.err == nil && down.Err() == nil {
		call()
	}
	for ctx.Err() == nil && !o.again {
		_, err := c.Devices.ListDevices(ctx, &nfcommsv1.ListDevicesRequest{})
		o.again = err == nil
	}
	return o
}
