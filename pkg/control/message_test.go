package control_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

func TestMessages(t *testing.T) {
	_, c := serveSim(t, quick)
	ctx := background(t)
	ch := openChannel(t, c, loopback)
	require.Equal(t, nfcommsv1.Channel_OWNER_SERVER, ch.Owner)
	require.Equal(t, nfcommsv1.Channel_STATE_OPEN, ch.State)
	for _, size := range []int{0, 1, 55, 56} {
		msg := bytes.Repeat([]byte{byte(size)}, size)
		require.NoError(t, c.Send(ctx, loopback, msg))
		got, err := c.Receive(ctx, loopback)
		require.NoError(t, err)
		require.True(t, bytes.Equal(msg, got), "%d bytes", size)
	}
	err := c.Send(ctx, loopback, make([]byte, 57))
	require.ErrorIs(t, err, nfcomms.ErrTooLarge)
	require.ErrorContains(t, err, "SendInd")
	require.ErrorIs(t, c.Send(ctx, loopback, make([]byte, 32<<20)), nfcomms.ErrTooLarge, "over gRPC's own limit too")

	closed, err := c.Channels.CloseChannel(ctx, &nfcommsv1.CloseChannelRequest{Name: loopback})
	require.NoError(t, err)
	require.Equal(t, nfcommsv1.Channel_STATE_CLOSED, closed.Channel.State)
	require.EqualValues(t, 4, closed.Channel.Stats.DirectH2D.Messages)
	require.EqualValues(t, 112, closed.Channel.Stats.DirectD2H.Bytes)
	require.ErrorIs(t, c.Send(ctx, loopback, nil), nfcomms.ErrNotSubscribed)
}

// TestMessageOfATransfer: a target that offers bulk data is not read here.
func TestMessageOfATransfer(t *testing.T) {
	_, c := serveSim(t, quick)
	ctx := background(t)
	p, err := c.Devices.StartProgram(ctx, &nfcommsv1.StartProgramRequest{Name: "devices/nic0/programs/source", Argument: 100})
	require.NoError(t, err)
	name := control.ChannelName("nic0", nfcomms.Target(p.Process.FirstTarget))
	openChannel(t, c, name)
	var ask [8]byte
	binary.LittleEndian.PutUint64(ask[:], 1<<20)
	require.NoError(t, c.Send(ctx, name, ask[:]))
	_, err = c.Receive(ctx, name)
	require.ErrorIs(t, err, nfcomms.ErrKindMismatch)
	require.ErrorContains(t, err, "ReceiveInd")
}

// TestExactDeadline: at the deadline the client gets the outcome of a message.
func TestExactDeadline(t *testing.T) {
	_, c := serveSim(t, quick)
	openChannel(t, c, loopback)
	ctx, cancel := context.WithTimeout(background(t), 20*time.Millisecond)
	defer cancel()
	_, err := c.Receive(ctx, loopback)
	require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotEqual(t, codes.DeadlineExceeded, status.Code(err), "it is the server's answer")

	ctx, cancel = context.WithCancel(background(t))
	done := make(chan error, 1)
	go func() { _, err := c.Receive(ctx, loopback); done <- err }()
	waitForReceives(t, c, 1)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	waitForReceives(t, c, 0) // the server withdraws what a client gave up
	require.NoError(t, c.Send(background(t), loopback, []byte("still there")))
}

// TestMessageWithAnEndedContext: nothing is sent, so the error can say so.
func TestMessageWithAnEndedContext(t *testing.T) {
	c := &control.Client{} // it is never asked
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	for _, err := range []error{
		c.Send(ctx, "devices/nic0/channels/1", nil),
		func() error { _, err := c.Receive(ctx, "devices/nic0/channels/1"); return err }(),
	} {
		require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
		require.ErrorIs(t, err, context.Canceled)
		var e *control.Error
		require.ErrorAs(t, err, &e)
	}
}

// TestOwners: the application's channels are listed, and nobody else's to use.
func TestOwners(t *testing.T) {
	srv, c := serve(t, quick)
	dev := open(t, "sim:")
	require.NoError(t, srv.Attach("nic0", dev))
	ctx := background(t)
	app, err := dev.Subscribe(ctx, admin.Log)
	require.NoError(t, err)
	openChannel(t, c, loopback)
	owners := make(map[uint32]nfcommsv1.Channel_Owner)
	for ch, err := range c.ListChannels(ctx, nic0) {
		require.NoError(t, err)
		require.NotNil(t, ch.Stats)
		owners[ch.Target] = ch.Owner
	}
	require.Equal(t, map[uint32]nfcommsv1.Channel_Owner{
		uint32(nfcomms.Loopback): nfcommsv1.Channel_OWNER_SERVER,
		uint32(admin.Log):        nfcommsv1.Channel_OWNER_APPLICATION,
	}, owners)
	require.NoError(t, app.Send(ctx, []byte("untouched")))
	_, err = dev.Subscribe(ctx, nfcomms.Loopback)
	require.ErrorIs(t, err, nfcomms.ErrBusy)

	// The application may reset its own device.
	require.NoError(t, dev.Reset(ctx))
	require.Error(t, c.Send(ctx, loopback, nil), "the channel is of an epoch that is over")
	require.Eventually(t, func() bool {
		_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: loopback})
		return err == nil
	}, time.Minute, time.Millisecond)
	require.NoError(t, c.Send(ctx, loopback, nil))
	require.NoError(t, srv.Remove("nic0"))
	_, err = dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err, "the server has let go of what it opened, and the device is the application's")
}

// TestIdleChannels: channels that a client left behind are closed.
func TestIdleChannels(t *testing.T) {
	_, c := serveSim(t, control.Options{Interval: time.Millisecond, ChannelIdle: time.Second})
	ctx := background(t)
	openChannel(t, c, loopback)
	busy := make(chan error, 1)
	go func() { _, err := c.Receive(ctx, loopback); busy <- err }()
	waitForReceives(t, c, 1)
	openChannel(t, c, "devices/nic0/channels/2")
	for r, err := range c.WatchEvents(ctx, nic0) {
		require.NoError(t, err)
		if r.GetEvent().GetType() == nfcommsv1.Event_TYPE_CHANNEL_IDLE {
			require.Equal(t, "devices/nic0/channels/2", r.Event.Resource)
			break
		}
	}
	_, err := c.Channels.GetChannel(ctx, &nfcommsv1.GetChannelRequest{Name: loopback})
	require.NoError(t, err, "a call runs on it")
	require.NoError(t, c.Send(ctx, loopback, nil))
	require.NoError(t, <-busy)
}

// TestProcessEnds: a channel whose process has ended is removed by the first call that finds out.
// One of which only a half is known to be closed makes room when it is opened anew.
func TestProcessEnds(t *testing.T) {
	_, c := serveSim(t, quick)
	ctx := background(t)
	start := func() (name, process string) {
		p, err := c.Devices.StartProgram(ctx, &nfcommsv1.StartProgramRequest{Name: "devices/nic0/programs/sink", FirstTarget: 4711})
		require.NoError(t, err)
		name = control.ChannelName("nic0", 4711)
		openChannel(t, c, name)
		return name, p.Process.Name
	}
	stop := func(process string) {
		_, err := c.Devices.StopProgram(ctx, &nfcommsv1.StopProgramRequest{Name: process})
		require.NoError(t, err)
	}
	name, process := start()
	stop(process)
	require.ErrorIs(t, c.Send(ctx, name, nil), nfcomms.ErrClosed)
	require.ErrorIs(t, c.Send(ctx, name, nil), nfcomms.ErrNotSubscribed, "the channel is gone")
	_, err := c.Channels.GetChannel(ctx, &nfcommsv1.GetChannelRequest{Name: name})
	require.ErrorIs(t, err, nfcomms.ErrNotSubscribed)

	name, process = start() // the channel of the next process
	require.NoError(t, c.Send(ctx, name, nil))
	stop(process)
	_, err = c.Receive(ctx, name)
	require.ErrorIs(t, err, nfcomms.ErrClosed)
	_, err = c.Receive(ctx, name)
	require.ErrorIs(t, err, nfcomms.ErrClosed, "it may still be sent to, as far as anybody knows")
	name, process = start()
	require.NoError(t, c.Send(ctx, name, nil))

	// One that works stays what it is.
	_, err = c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: name})
	require.ErrorIs(t, err, nfcomms.ErrBusy)
	stop(process)
}

func TestChannelLimit(t *testing.T) {
	_, c := serveSim(t, control.Options{MaxChannels: 2})
	ctx := background(t)
	openChannel(t, c, loopback)
	openChannel(t, c, "devices/nic0/channels/2")
	_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: "devices/nic0/channels/3"})
	require.ErrorIs(t, err, nfcomms.ErrNoMemory)
	require.ErrorContains(t, err, "has 2 remote channels")
	_, err = c.Channels.CloseChannel(ctx, &nfcommsv1.CloseChannelRequest{Name: loopback})
	require.NoError(t, err)
	openChannel(t, c, "devices/nic0/channels/3")
}

// TestPrograms loads a program that was built outside, and runs it.
func TestPrograms(t *testing.T) {
	object := filepath.Join(t.TempDir(), "checksum.so")
	out, err := exec.Command("gcc", "-std=c11", "-shared", "-fPIC", "-DNFC_PROGRAM_SHARED", "-I../../firmware",
		"-o", object, "../../examples/program/device/checksum.c").CombinedOutput()
	require.NoError(t, err, "gcc (install it with: apt-get install gcc): %s", out)
	image, err := os.ReadFile(object)
	require.NoError(t, err)

	_, c := serveSim(t, quick)
	ctx := background(t)
	var seen []uint64
	program, err := c.LoadProgram(ctx, &nfcommsv1.LoadProgramHeader{Parent: nic0, SizeBytes: uint64(len(image))}, bytes.NewReader(image), func(n uint64) { seen = append(seen, n) })
	require.NoError(t, err)
	require.Equal(t, "devices/nic0/programs/checksum", program.Name)
	require.IsNonDecreasing(t, seen)
	require.EqualValues(t, len(image), seen[len(seen)-1])

	var names []string
	for p, err := range c.ListPrograms(ctx, nic0, "") {
		require.NoError(t, err)
		names = append(names, p.Name)
	}
	require.IsIncreasing(t, names)
	require.Contains(t, names, program.Name)

	r, err := c.Devices.StartProgram(ctx, &nfcommsv1.StartProgramRequest{Name: program.Name, Targets: 1})
	require.NoError(t, err)
	openChannel(t, c, control.ChannelName("nic0", nfcomms.Target(r.Process.FirstTarget)))
	_, err = c.Devices.StopProgram(ctx, &nfcommsv1.StopProgramRequest{Name: r.Process.Name})
	require.NoError(t, err)
	_, err = c.Devices.StopProgram(ctx, &nfcommsv1.StopProgramRequest{Name: r.Process.Name})
	require.ErrorIs(t, err, control.ErrNoProcess, "it is gone")
	for _, want := range []nfcommsv1.Event_Type{
		nfcommsv1.Event_TYPE_PROGRAM_LOADED, nfcommsv1.Event_TYPE_PROCESS_STARTED, nfcommsv1.Event_TYPE_PROCESS_STOPPED,
	} {
		require.Contains(t, eventTypes(t, c), want)
	}
}

// TestStartedHasTargets: later only the event shows which process has a target.
func TestStartedHasTargets(t *testing.T) {
	_, c := serveSim(t, quick)
	for first, want := range map[uint32]string{300: "started: hold at target 300", 400: "started: hold at targets 400 to 402"} {
		_, err := c.Devices.StartProgram(background(t), &nfcommsv1.StartProgramRequest{
			Name: "devices/nic0/programs/hold", FirstTarget: first, Targets: first / 400 * 3})
		require.NoError(t, err)
		r, err := c.Events.ListEvents(background(t), &nfcommsv1.ListEventsRequest{Parent: nic0})
		require.NoError(t, err)
		require.Equal(t, want, r.Events[len(r.Events)-1].Message)
	}
}

// TestLoadFailsHere: failures at the client's end of an upload.
func TestLoadFailsHere(t *testing.T) {
	_, c := serveSim(t, quick)
	broken := errors.New("disk on fire")
	of := func(size uint64) *nfcommsv1.LoadProgramHeader {
		return &nfcommsv1.LoadProgramHeader{Parent: nic0, SizeBytes: size}
	}
	_, err := c.LoadProgram(background(t), of(5), iotest.ErrReader(broken), nil)
	require.ErrorIs(t, err, broken)
	_, err = c.LoadProgram(background(t), of(5), bytes.NewReader(nil), nil)
	require.ErrorIs(t, err, io.EOF)
	_, err = c.LoadProgram(background(t), of(65<<20), bytes.NewReader(make([]byte, 65<<20)), nil)
	require.ErrorIs(t, err, nfcomms.ErrTooLarge)
}

// TestOneUploadAtATime: a second one is refused, and the first may end.
func TestOneUploadAtATime(t *testing.T) {
	_, c := serveSim(t, quick)
	ctx, cancel := context.WithCancel(background(t))
	defer cancel()
	s, err := c.Devices.LoadProgram(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Send(header(nic0, 10)))
	require.NoError(t, s.Send(chunk(5)))
	r, err := s.Recv()
	require.NoError(t, err)
	require.EqualValues(t, 5, r.ReceivedBytes)
	require.ErrorIs(t, load(c, nic0, 4, 4)(background(t)), nfcomms.ErrBusy)
	cancel()
	require.Eventually(t, func() bool {
		err := load(c, nic0, 4, 4)(background(t))
		return errors.Is(err, nfcomms.ErrInvalid)
	}, time.Minute, time.Millisecond, "an upload that was given up is over")
}

// TestListenersAreNamed: channels to and from a listener of the application show its name.
func TestListenersAreNamed(t *testing.T) {
	srv, c := serve(t, quick)
	dev := open(t, "sim:")
	require.NoError(t, srv.Attach("nic0", dev))
	ctx := background(t)
	l, err := dev.Listen(ctx, "thumbnails")
	require.NoError(t, err)
	_, err = dev.Dial(ctx, "thumbnails")
	require.NoError(t, err)
	_, err = dev.Subscribe(ctx, admin.Log)
	require.NoError(t, err)
	names := make(map[uint32]string)
	for ch, err := range c.ListChannels(ctx, nic0) {
		require.NoError(t, err)
		names[ch.Target] = ch.Listener
	}
	require.Equal(t, map[uint32]string{uint32(l.Target()): "thumbnails", uint32(admin.Log): ""}, names)
}
