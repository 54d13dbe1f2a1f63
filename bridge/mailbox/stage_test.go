package mailbox

import (
	"context"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
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

func (s *staging) Fill(mem, data []byte) {
	s.fill()
	copy(mem, data)
}

func (s *staging) Unstage([]byte) { s.staged-- }

func setupStaging(t *testing.T) (*staging, *Device, *Channel) {
	f := newFake(t)
	s := &staging{fake: f, memory: pages(1 << 20)[abi.PageSize-123:], fill: func() {}}
	dev, err := Open(context.Background(), s, bridge.Info{}, nil)
	require.NoError(t, err)
	d := dev.(*Device)
	t.Cleanup(func() { _ = d.Close() })
	return s, d, f.subscribe(d)
}

// TestStage: bytes of a buffer that the device does not reach pass through memory of the
// port, also those of a region; a failed receive leaves its buffer alone.
func TestStage(t *testing.T) {
	s, d, c := setupStaging(t)
	ctx := context.Background()
	data := []byte("to the device")
	r, err := d.Register(data)
	require.NoError(t, err)
	wait := s.async(func() error { return c.SendInd(ctx, data) })
	s.expect(fakeMailbox, abi.TypeIndBegin)
	list := s.expect(fakeMailbox, abi.TypeIndList)
	address, length := list.Gather().Entry[0].Address(), list.Gather().Entry[0].Length()
	require.EqualValues(t, uintptr(unsafe.Pointer(&s.memory[0]))+fakeShift, address)
	require.EqualValues(t, len(data), length)
	require.Equal(t, "to the device", string(s.memory[:len(data)]))
	require.ErrorIs(t, r.Close(), bridge.ErrBusy)
	s.ack(abi.TypeDone, done(1, abi.H2D, len(data)))
	s.expect(fakeMailbox, abi.TypeFin)
	require.NoError(t, wait())
	require.NoError(t, r.Close())

	got := make([]byte, 8)
	s.begin(1, 8)
	wait = s.async(func() error { return c.ReceiveInd(ctx, got) })
	s.expect(fakeMailbox, abi.TypeIndList)
	copy(s.memory, "came all")
	s.ack(abi.TypeDone, done(1, abi.D2H, 8))
	s.expect(fakeMailbox, abi.TypeFin)
	require.NoError(t, wait())
	require.Equal(t, "came all", string(got))

	s.begin(2, 8)
	wait = s.async(func() error { return c.ReceiveInd(ctx, got) })
	s.expect(fakeMailbox, abi.TypeIndList)
	copy(s.memory, "in parts")
	s.ack(abi.TypeError, abi.Ack{Transaction: 2, Outstanding: 8, State: abi.StateFailed, Status: abi.ErrDMA, Direction: uint32(abi.D2H)})
	require.ErrorIs(t, wait(), bridge.ErrDMA)
	require.Equal(t, "came all", string(got))
	require.Zero(t, s.staged)
	s.none = bridge.ErrNoMemory
	require.ErrorIs(t, c.SendInd(ctx, data), bridge.ErrNoMemory)
}

// TestStageByParts: the first part is offered before the next is copied, each list comes when its
// bytes are there, and who cancels waits for no more of them.
func TestStageByParts(t *testing.T) {
	s, d, c := setupStaging(t)
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
	s.expect(fakeMailbox, abi.TypeIndBegin)
	require.Equal(t, data[:6*4096], s.lists(1, 0, 1, 0))
	<-copying
	s.ack(abi.TypeAck, abi.Ack{Transaction: 1, State: abi.StateReady})
	lists := int(d.cur.Load().Split(0, size).Lists())
	for k := 1; k < lists; k++ {
		require.False(t, s.pending(fakeMailbox), "a list came before its bytes")
		proceed <- struct{}{}
		end := min((k+1)*6*4096, size)
		require.Equal(t, data[k*6*4096:end], s.lists(1, k, k+1, 0))
		s.ack(abi.TypeAck, abi.Ack{Transaction: 1, State: abi.StateMoving, Lists: uint32(k + 1), Processed: uint64(end)})
		if k+1 < lists {
			<-copying
		}
	}
	s.ack(abi.TypeDone, done(1, abi.H2D, size))
	s.expect(fakeMailbox, abi.TypeFin)
	require.NoError(t, wait())

	ctx, cancel := context.WithCancel(context.Background())
	n = 0
	wait = s.async(func() error { return c.SendInd(ctx, data) })
	<-copying
	cancel()
	proceed <- struct{}{}
	s.expect(fakeMailbox, abi.TypeIndBegin)
	s.expect(fakeMailbox, abi.TypeIndList)
	s.expect(fakeMailbox, abi.TypeAbort)
	s.ack(abi.TypeAborted, abi.Ack{Transaction: 2, Outstanding: size, State: abi.StateFailed, Status: abi.ErrAborted})
	require.ErrorIs(t, wait(), context.Canceled)
	require.Equal(t, 2, n)
	require.Zero(t, s.staged)
}

// TestParts: a transfer has some parts, of whole pages and no size that takes long.
func TestParts(t *testing.T) {
	for size, part := range map[uint64]uint64{
		1: partLeast, abi.EagerBytes: partLeast, 1 << 20: partLeast, 16<<20 + 5: 1 << 20, 17<<20 + 1: 17 << 16, 5 << 30: partMost,
	} {
		require.Equal(t, part, partOf(size), size)
	}
}

// TestDoorbellEnds: a device whose doorbell ends is lost at once, and one that comes
// with another doorbell is heard.
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
