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

// staging is a fake whose device reaches one page alone.
type staging struct {
	*fake
	page   []byte
	staged int
	none   error
}

func (s *staging) Map([]byte) (uint64, error) { return 0, nil }
func (s *staging) Unmap(uint64, uint64)       {}

func (s *staging) Stage(data []byte, d abi.Direction) (uint64, error) {
	if s.none != nil {
		return 0, s.none
	}
	s.staged++
	if d == abi.H2D {
		copy(s.page, data)
	}
	return uint64(uintptr(unsafe.Pointer(&s.page[0]))), nil
}

func (s *staging) Unstage(data []byte, _ uint64, arrived bool) {
	s.staged--
	if arrived {
		copy(data, s.page)
	}
}

func setupStaging(t *testing.T) (*staging, *Device, *Channel) {
	f := newFake(t)
	s := &staging{fake: f, page: pages(4096)}
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
	require.EqualValues(t, uintptr(unsafe.Pointer(&s.page[0])), address)
	require.EqualValues(t, len(data), length)
	require.Equal(t, "to the device", string(s.page[:len(data)]))
	require.ErrorIs(t, r.Close(), bridge.ErrBusy)
	s.ack(abi.TypeDone, done(1, abi.H2D, len(data)))
	s.expect(fakeMailbox, abi.TypeFin)
	require.NoError(t, wait())
	require.NoError(t, r.Close())

	got := make([]byte, 8)
	s.begin(1, 8)
	wait = s.async(func() error { return c.ReceiveInd(ctx, got) })
	s.expect(fakeMailbox, abi.TypeIndList)
	copy(s.page, "came all")
	s.ack(abi.TypeDone, done(1, abi.D2H, 8))
	s.expect(fakeMailbox, abi.TypeFin)
	require.NoError(t, wait())
	require.Equal(t, "came all", string(got))

	s.begin(2, 8)
	wait = s.async(func() error { return c.ReceiveInd(ctx, got) })
	s.expect(fakeMailbox, abi.TypeIndList)
	copy(s.page, "in parts")
	s.ack(abi.TypeError, abi.Ack{Transaction: 2, Outstanding: 8, State: abi.StateFailed, Status: abi.ErrDMA, Direction: uint32(abi.D2H)})
	require.ErrorIs(t, wait(), bridge.ErrDMA)
	require.Equal(t, "came all", string(got))
	require.Zero(t, s.staged)
	s.none = bridge.ErrNoMemory
	require.ErrorIs(t, c.SendInd(ctx, data), bridge.ErrNoMemory)
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
