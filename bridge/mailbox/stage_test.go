package mailbox

import (
	"context"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fault"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// staging is a fake whose device reaches a few pages alone.
type staging struct {
	*fake
	memory []byte
	staged int
	none   error
	fill   func() // is called before bytes are copied there
}

func (s *staging) Map([]byte) (uint64, error) { return 0, nil }
func (s *staging) Unmap(uint64, uint64)       {}

func (s *staging) Stage(size int) ([]byte, uint64, error) {
	if s.none != nil {
		return nil, 0, s.none
	}
	s.staged++
	return s.memory[:size], uint64(uintptr(unsafe.Pointer(&s.memory[0]))) + fakeShift, nil
}

func (s *staging) Fill(mem, data []byte) (int, error) {
	s.fill()
	return fault.Copy(mem, data)
}

func (s *staging) Unstage([]byte) { s.staged-- }

func newStaging(t *testing.T, size int) *staging {
	return &staging{fake: newFake(t), memory: pages(size + abi.PageSize)[abi.PageSize-123:], fill: func() {}}
}

func (s *staging) start(t *testing.T) (*device, *channel) {
	dev, err := Open(context.Background(), s, bridge.Info{}, nil)
	require.NoError(t, err)
	d := dev.(*device)
	t.Cleanup(func() { _ = d.Close() })
	return d, s.subscribe(d)
}

// TestStage: bytes of a buffer that the device does not reach pass through memory of the
// port, also those of a region; a failed receive leaves its buffer alone.
func TestStage(t *testing.T) {
	s := newStaging(t, 1<<20)
	d, c := s.start(t)
	ctx := context.Background()
	data := []byte("to the device")
	r, err := d.Register(data)
	require.NoError(t, err)
	wait := s.async(func() error { return c.SendInd(ctx, data) })
	s.expect(fakeMailbox, wire.TypeIndBegin)
	list := s.expect(fakeMailbox, wire.TypeIndList)
	address, length := list.Gather().Entry[0].Address(), list.Gather().Entry[0].Length()
	require.EqualValues(t, uintptr(unsafe.Pointer(&s.memory[0]))+fakeShift, address)
	require.EqualValues(t, len(data), length)
	require.Equal(t, "to the device", string(s.memory[:len(data)]))
	require.ErrorIs(t, r.Close(), bridge.ErrBusy)
	s.ack(wire.TypeDone, done(1, abi.H2D, len(data)))
	s.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())
	require.NoError(t, r.Close())

	got := make([]byte, 8)
	s.begin(1, 8)
	wait = s.async(func() error { return c.ReceiveInd(ctx, got) })
	s.expect(fakeMailbox, wire.TypeIndList)
	copy(s.memory, "came all")
	s.ack(wire.TypeDone, done(1, abi.D2H, 8))
	s.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())
	require.Equal(t, "came all", string(got))

	s.begin(2, 8)
	wait = s.async(func() error { return c.ReceiveInd(ctx, got) })
	s.expect(fakeMailbox, wire.TypeIndList)
	copy(s.memory, "in parts")
	s.ack(wire.TypeError, wire.Ack{Transaction: 2, Outstanding: 8, State: wire.StateFailed, Status: abi.ErrDMA, Direction: uint32(abi.D2H)})
	require.ErrorIs(t, wait(), bridge.ErrDMA)
	require.Equal(t, "came all", string(got))
	require.Zero(t, s.staged)
	s.none = bridge.ErrNoMemory
	require.ErrorIs(t, c.SendInd(ctx, data), bridge.ErrNoMemory)
}

// TestStageByParts: the first part is offered before the next is copied, each list is sent when its
// bytes are copied, and a cancelled call waits for no more of them.
func TestStageByParts(t *testing.T) {
	s := newStaging(t, 1<<20)
	d, c := s.start(t)
	const size = 3*partLeast + 100
	copying, proceed := make(chan struct{}), make(chan struct{}, 1<<10)
	n := 0
	s.fill = func() {
		if n++; n > 1 {
			copying <- struct{}{}
			<-proceed
		}
	}
	data := pattern(size)
	wait := s.async(func() error { return c.SendInd(context.Background(), data) })
	s.expect(fakeMailbox, wire.TypeIndBegin)
	require.Equal(t, data[:6*4096], s.lists(1, 0, 1, 0))
	<-copying
	s.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateReady})
	lists := int(d.cur.Load().Split(0, size).Lists())
	for k := 1; k < lists; k++ {
		require.False(t, s.pending(fakeMailbox), "a list came before its bytes")
		proceed <- struct{}{}
		end := min((k+1)*6*4096, size)
		require.Equal(t, data[k*6*4096:end], s.lists(1, k, k+1, 0))
		s.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateMoving, Lists: uint32(k + 1), Processed: uint64(end)})
		if k+1 < lists {
			<-copying
		}
	}
	s.ack(wire.TypeDone, done(1, abi.H2D, size))
	s.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())

	ctx, cancel := context.WithCancel(context.Background())
	n = 0
	wait = s.async(func() error { return c.SendInd(ctx, data) })
	<-copying
	cancel()
	proceed <- struct{}{}
	s.expect(fakeMailbox, wire.TypeIndBegin)
	s.expect(fakeMailbox, wire.TypeIndList)
	s.expect(fakeMailbox, wire.TypeAbort)
	s.ack(wire.TypeAborted, wire.Ack{Transaction: 2, Outstanding: size, State: wire.StateFailed, Status: abi.ErrAborted})
	require.ErrorIs(t, wait(), context.Canceled)
	require.Equal(t, 2, n)
	require.Zero(t, s.staged)
}

// TestStageFromByParts: a part that has arrived is copied while the next ones move, where the device
// reports each, and a failed receive copies no more.
func TestStageFromByParts(t *testing.T) {
	const parts = fakeWindow + 3
	const size = parts * partLeast
	s := newStaging(t, size)
	s.area.DeviceHello.Hello().Capabilities |= wire.CapRounds | wire.CapRuns
	_, c := s.start(t)
	require.NotZero(t, s.area.HostHello.Hello().Capabilities&wire.CapRounds)
	data, got := pattern(size), make([]byte, size)
	report := func(kind wire.Type, id uint64, lists int, state wire.State, status abi.Status) {
		s.ack(kind, wire.Ack{Transaction: id, State: state, Status: status, Lists: uint32(lists), Direction: uint32(abi.D2H),
			Processed: uint64(lists * partLeast), Outstanding: uint64(size - lists*partLeast)})
	}
	// moves has the first parts move. A list that follows shows that the part before was copied.
	moves := func(id uint64, n int) (wait func() error) {
		s.begin(id, size)
		wait = s.async(func() error { return c.ReceiveInd(context.Background(), got) })
		for range fakeWindow {
			s.expect(fakeMailbox, wire.TypeIndList)
		}
		for k := range n {
			copy(s.memory[k*partLeast:], data[k*partLeast:(k+1)*partLeast])
			report(wire.TypeAck, id, k+1, wire.StateMoving, abi.OK)
			s.expect(fakeMailbox, wire.TypeIndList)
			clear(s.memory[max(0, k-1)*partLeast : k*partLeast]) // it is not copied again
		}
		return wait
	}
	wait := moves(1, 3)
	copy(s.memory[3*partLeast:], data[3*partLeast:])
	s.ack(wire.TypeDone, done(1, abi.D2H, size))
	s.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())
	require.Equal(t, data, got)

	clear(got)
	wait = moves(2, 2)
	report(wire.TypeError, 2, 2, wire.StateFailed, abi.ErrDMA)
	require.ErrorIs(t, wait(), bridge.ErrDMA)
	require.Equal(t, data[:partLeast], got[:partLeast])
	require.Equal(t, make([]byte, size-2*partLeast), got[2*partLeast:])
	require.Zero(t, s.staged)
}

// TestParts: a transfer has some parts, of whole pages and no size that takes long.
func TestParts(t *testing.T) {
	for size, part := range map[uint64]uint64{
		1: partLeast, wire.EagerBytes: partLeast, 1 << 20: partLeast, 16<<20 + 5: 1 << 20, 17<<20 + 1: 17 << 16, 5 << 30: partMost,
	} {
		require.Equal(t, part, partOf(size), size)
	}
}

// TestDoorbellEnds: a device whose doorbell ends is lost at once, and a new one
// with another doorbell is served.
func TestDoorbellEnds(t *testing.T) {
	f := newFake(t)
	d := f.open()
	old := f.rope
	require.NoError(t, old.Close())
	<-d.cur.Load().fenced
	require.ErrorIs(t, d.cur.Load().err(), bridge.ErrDeviceLost)
	require.NoError(t, f.bell.Close())
	var err error
	f.bell, f.rope, err = os.Pipe()
	require.NoError(t, err)
	require.NoError(t, d.Reset(context.Background()))
	before := d.Stats().Wakeups
	_, err = f.rope.Write(make([]byte, 8))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return d.Stats().Wakeups > before }, bootTime, cancelStep/25)
}
