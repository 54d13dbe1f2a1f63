package mailbox

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

func TestSubscribeRefusals(t *testing.T) {
	f := newFake(t)
	d := f.open()
	for _, target := range []bridge.Target{abi.TargetControl, fakeChannels, 1 << 30} {
		_, err := d.Subscribe(context.Background(), target)
		require.ErrorIs(t, err, bridge.ErrNotSubscribed)
	}
	for status := abi.OK + 1; status < abi.StatusCount; status++ {
		wait := f.async(func() error {
			_, err := d.Subscribe(context.Background(), fakeTarget)
			return err
		})
		f.serve(func(c *wire.Control) { c.Status = uint16(status) })
		require.ErrorIs(t, wait(), bridge.Error(status))
	}
	f.subscribe(d)
	_, err := d.Subscribe(context.Background(), fakeTarget)
	require.ErrorIs(t, err, bridge.ErrBusy)
}

// A listener says that it knows of processes that connect, in a word that older devices do not
// look at; what those offer is a host.
func TestListenKnowsOfProcesses(t *testing.T) {
	f := newFake(t)
	d := f.open()
	for _, anyone := range []bool{false, true} {
		wait := f.async(func() error {
			_, err := d.Listen(context.Background(), bridge.ListenOptions{Anyone: anyone})
			return err
		})
		f.serve(func(c *wire.Control) {
			require.EqualValues(t, wire.ControlListen, c.Op)
			require.Equal(t, anyone, c.A == 1)
			require.EqualValues(t, 1, c.B)
			c.Status = uint16(abi.ErrNotSupported)
		})
		require.ErrorIs(t, wait(), bridge.ErrNotSupported)
	}
	var l bridge.Listener
	wait := f.async(func() (err error) {
		l, err = d.Listen(context.Background(), bridge.ListenOptions{})
		return err
	})
	f.serve(func(c *wire.Control) { c.A, c.B, c.C = 9, abi.TargetFirst, abi.TargetHosts })
	f.serve(func(c *wire.Control) { c.A, c.B, c.C = 1, 1, fakeGeneration })
	require.NoError(t, wait())
	require.EqualValues(t, abi.TargetHosts, l.Target())
}

// The reply that opens a channel travels through another mailbox than the
// channel's first messages.
func TestMessagesBeforeTheChannelIsOpen(t *testing.T) {
	f := newFake(t)
	d := f.open()
	var c bridge.Channel
	wait := f.async(func() (err error) {
		c, err = d.Subscribe(context.Background(), fakeTarget)
		return err
	})
	f.serve(func(r *wire.Control) {
		f.message(1<<16+7, "early")
		f.close(1<<abi.D2H, fakeGeneration)
		d.cur.Load().mailboxes[fakeMailbox].drain()
		r.A, r.B, r.C = 1<<32, 1<<16+7, fakeGeneration
	})
	require.NoError(t, wait())
	buf := make([]byte, 56)
	n, err := c.Receive(context.Background(), buf)
	require.NoError(t, err)
	require.Equal(t, "early", string(buf[:n]))
	require.EqualValues(t, 1<<16+7, f.expect(fakeMailbox, wire.TypeAck).Ack().Transaction)
	_, err = c.Receive(context.Background(), buf)
	require.ErrorIs(t, err, bridge.ErrClosed)
}

func TestTooManyMessagesBeforeTheChannelIsOpen(t *testing.T) {
	f := newFake(t)
	d := f.open()
	wait := f.async(func() error {
		_, err := d.Subscribe(context.Background(), fakeTarget)
		return err
	})
	f.expect(0, wire.TypeDirect)
	for range earlyMax + 1 {
		f.message(1, "")
	}
	d.cur.Load().mailboxes[fakeMailbox].drain()
	require.ErrorIs(t, wait(), bridge.ErrFault)
}

// taken reports whether the device took the first control request.
func taken(d *device) bool {
	return d.cur.Load().control.ch.Stats().Direct.H2D.Messages == 1
}

func TestSubscribeOutlivesItsContext(t *testing.T) {
	f := newFake(t)
	d := f.open()
	ctx, cancel := context.WithCancel(context.Background())
	wait := f.async(func() error {
		_, err := d.Subscribe(ctx, fakeTarget)
		return err
	})
	f.serve(func(r *wire.Control) {
		f.until("the request is taken", func() bool { return taken(d) })
		cancel()
		r.A, r.B, r.C = 1, 1, fakeGeneration
	})
	require.NoError(t, wait(), "the target is ours: it must not be forgotten")
}

func TestControlUnansweredMeansLost(t *testing.T) {
	f := newFake(t)
	d := f.open()
	ctx, cancel := context.WithCancel(context.Background())
	wait := f.async(func() error {
		_, err := d.Subscribe(ctx, fakeTarget)
		return err
	})
	f.expect(0, wire.TypeDirect)
	var s wire.Slot
	*s.Ack() = consumed
	f.put(0, wire.MakeHeader(wire.TypeAck, abi.PayloadSize, 1, 1, 0), s)
	f.until("the request is taken", func() bool { return taken(d) })
	cancel()
	require.ErrorIs(t, wait(), bridge.ErrDeviceLost)
}

// TestControlAnsweredByATransfer: a device that offers a transfer where a reply
// must arrive has broken the protocol, and does not hold up control for ever.
func TestControlAnsweredByATransfer(t *testing.T) {
	f := newFake(t)
	d := f.open()
	wait := f.async(func() error {
		_, err := d.Subscribe(context.Background(), fakeTarget)
		return err
	})
	h := wire.Header(f.expect(0, wire.TypeDirect).Header)
	var ack, begin wire.Slot
	*ack.Ack() = consumed
	f.put(0, wire.MakeHeader(wire.TypeAck, abi.PayloadSize, h.Epoch(), 1, 0), ack)
	*begin.Begin() = wire.Begin{Transaction: 1, Size: 100}
	f.put(0, wire.MakeHeader(wire.TypeIndBegin, abi.PayloadSize, h.Epoch(), 1, 0), begin)
	require.ErrorIs(t, wait(), bridge.ErrFault)
	_, err := d.Start(context.Background(), bridge.Program{Name: "any", Targets: 1})
	require.ErrorIs(t, err, bridge.ErrFault)
}

func TestControlRepliesThatMakeNoSense(t *testing.T) {
	for name, mend := range map[string]func(*wire.Control){
		"op":      func(c *wire.Control) { c.Op++ },
		"request": func(c *wire.Control) { c.Request-- },
		"status":  func(c *wire.Control) { c.Status = uint16(abi.StatusCount) },
		"name":    func(c *wire.Control) { c.Name = [abi.NameSize]byte{} },
		"no NUL":  func(c *wire.Control) { copy(c.Name[:], "123456789012345678901234567890") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			d := f.open()
			wait := f.async(func() error { _, err := d.Programs(context.Background()); return err })
			f.serve(func(c *wire.Control) { c.Name[0] = 'x'; mend(c) })
			require.ErrorIs(t, wait(), bridge.ErrFault)
		})
	}
}

func TestStartAndStop(t *testing.T) {
	f := newFake(t)
	d := f.open()
	ctx := context.Background()
	for _, p := range []bridge.Program{{Targets: 1}, {Name: "a name that is far too long", Targets: 1}, {Name: "a\x00b", Targets: 1}} {
		_, err := d.Start(ctx, p)
		require.ErrorIs(t, err, bridge.ErrNoProgram)
	}
	for _, p := range []bridge.Program{{Name: "p"}, {Name: "p", Targets: -1}, {Name: "p", Targets: 65}, {Name: "p", First: 64, Targets: 1}} {
		_, err := d.Start(ctx, p)
		require.ErrorIs(t, err, bridge.ErrInvalid)
	}
	var p bridge.Process
	wait := f.async(func() (err error) {
		p, err = d.Start(ctx, bridge.Program{Name: "sink", First: 20, Targets: 3, Argument: 77})
		return err
	})
	f.serve(func(c *wire.Control) {
		require.EqualValues(t, wire.ControlStart, c.Op)
		require.Equal(t, "sink", string(c.Name[:4]))
		require.Equal(t, []uint64{20, 3, 77}, []uint64{c.A, c.B, c.C})
		c.A, c.B = 5, 20
	})
	require.NoError(t, wait())
	require.Equal(t, bridge.Process{ID: 5, First: 20, Targets: 3}, p)
	wait = f.async(func() error { return d.Stop(ctx, p.ID) })
	for range 3 { // on its way out
		f.serve(func(c *wire.Control) { require.EqualValues(t, 5, c.A); c.Status = uint16(abi.ErrBusy) })
	}
	f.serve(func(c *wire.Control) {})
	require.NoError(t, wait())
	wait = f.async(func() error { _, err := d.Start(ctx, bridge.Program{Name: "p", Targets: 1}); return err })
	f.serve(func(c *wire.Control) { c.B = 1 << 40 })
	require.ErrorIs(t, wait(), bridge.ErrFault)
}

func TestPrograms(t *testing.T) {
	f := newFake(t)
	d := f.open()
	var names []string
	wait := f.async(func() (err error) { names, err = d.Programs(context.Background()); return err })
	for i, name := range []string{"sink", "source", ""} {
		f.serve(func(c *wire.Control) {
			require.EqualValues(t, i, c.A)
			copy(c.Name[:], name)
			if name == "" {
				c.Status = uint16(abi.ErrNoProgram)
			}
		})
	}
	require.NoError(t, wait())
	require.Equal(t, []string{"sink", "source"}, names)
}

func TestMemory(t *testing.T) {
	f := newFake(t)
	d := f.open()
	for _, kind := range []int{-1, abi.MemoryCount} {
		_, err := d.Memory(context.Background(), kind)
		require.ErrorIs(t, err, bridge.ErrInvalid)
	}
	var m bridge.Memory
	wait := f.async(func() (err error) { m, err = d.Memory(context.Background(), abi.EMEM); return err })
	f.serve(func(c *wire.Control) { c.A, c.B, c.C = abi.EMEM<<abi.MemoryShift, 100, 50 })
	require.NoError(t, wait())
	require.Equal(t, bridge.Memory{Base: abi.EMEM << abi.MemoryShift, Size: 100, Free: 50}, m)
}

func TestLoad(t *testing.T) {
	f := newFake(t)
	d := f.open()
	_, err := d.Load(context.Background(), nil)
	require.ErrorIs(t, err, bridge.ErrInvalid)
	var name string
	wait := f.async(func() (err error) { name, err = d.Load(context.Background(), pages(50)); return err })
	s := f.expect(0, wire.TypeDirect)
	require.EqualValues(t, 50, s.Control().A)
	ack := func(t wire.Type, a wire.Ack) {
		var r wire.Slot
		*r.Ack() = a
		f.put(0, wire.MakeHeader(t, abi.PayloadSize, 1, uint16(a.Transaction), 0), r)
	}
	ack(wire.TypeAck, consumed)
	f.expect(0, wire.TypeIndBegin)
	f.expect(0, wire.TypeIndList)
	ack(wire.TypeDone, done(2, abi.H2D, 50))
	f.expect(0, wire.TypeFin)
	copy(s.Control().Name[:], "loaded")
	f.put(0, wire.MakeHeader(wire.TypeDirect, abi.PayloadSize, 1, 1, 0), *s)
	f.expect(0, wire.TypeAck)
	require.NoError(t, wait())
	require.Equal(t, "loaded", name)
	d.cur.Load().Hello.Capabilities = 0
	_, err = d.Load(context.Background(), pages(50))
	require.ErrorIs(t, err, bridge.ErrNotSupported)
}

// TestSubscribeBehindAClose: the device gave the target of a channel, whose close it agreed to, to
// a new process. The target can be subscribed even if the caller that closed the channel has not
// yet processed that agreement.
func TestSubscribeBehindAClose(t *testing.T) {
	f := newFake(t)
	d := f.open()
	old := f.subscribe(d)
	closed := f.async(old.Close)
	f.expect(fakeMailbox, wire.TypeClose)
	var s wire.Slot
	*s.Close() = wire.Close{Halves: 1<<abi.H2D | 1<<abi.D2H, Generation: fakeGeneration}
	f.place(fakeMailbox, f.header(wire.TypeClose, abi.PayloadSize, fakeGeneration), s) // and no ring
	again := f.async(func() error {
		_, err := d.Subscribe(context.Background(), fakeTarget)
		return err
	})
	f.serve(func(r *wire.Control) { r.A, r.B, r.C = 1, 1, fakeGeneration+1 })
	require.NoError(t, again())
	require.NoError(t, closed())
	require.Equal(t, 1, d.Stats().Channels)
}

// A Stop whose context ends within a later request ends as between two requests:
// the process was told, and only the question whether it has returned is withdrawn.
func TestStopEndsDuringALaterRequest(t *testing.T) {
	f := newFake(t)
	d := f.open()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wait := f.async(func() error { return d.Stop(ctx, 1) })
	f.serve(func(c *wire.Control) {
		require.EqualValues(t, wire.ControlStop, c.Op)
		c.Status = uint16(abi.ErrBusy)
	})
	h := wire.Header(f.expect(0, wire.TypeDirect).Header)
	cancel()
	s := *f.expect(0, wire.TypeWithdraw)
	f.put(0, wire.MakeHeader(wire.TypeWithdrawn, abi.PayloadSize, 1, h.Sequence(), h.Channel()), s)
	err := wait()
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, bridge.ErrWithdrawn)
	require.ErrorContains(t, err, "process told to stop")
}
