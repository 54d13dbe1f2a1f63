package mailbox

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits before it gives up: a watchdog, not a
// measure.
const patience = 30 * time.Second

const (
	fakeChannels  = 64
	fakeMailboxes = 2
	fakeSlots     = 16
	fakeWindow    = 4
	fakeTarget    = 5
	fakeShift     = 1 << 44 // from an address to its bus address
)

// fake is a device that the test drives, slot by slot.
type fake struct {
	t    testing.TB
	mem  []byte
	area *wire.Area
	lay  memory
	bell *os.File // the host's end
	rope *os.File // the device's end

	rings, fences, assists atomic.Int64
	onFence                func()
	mapped                 atomic.Int64 // buffers that are mapped now
	noMap                  error        // why Map fails
	noBoot                 bool

	h2dHead [fakeMailboxes]uint64
	d2hTail [fakeMailboxes]uint64

	beatMS  uint32      // as promised in the hello
	mute    atomic.Bool // no heartbeats
	pulse   sync.Mutex  // a heartbeat, or a boot
	beat    atomic.Uint64
	rung    chan struct{} // room for one ring
	stop    chan struct{}
	beating sync.WaitGroup
}

func newFake(t testing.TB) *fake { return newFakeBeating(t, 5) }

// newFakeBeating is newFake for a device that promises a heartbeat every so
// many milliseconds, and beats every 5.
func newFakeBeating(t testing.TB, beatMS uint32) *fake {
	f := &fake{t: t, beatMS: beatMS, stop: make(chan struct{}), rung: make(chan struct{}, 1)}
	var err error
	f.bell, f.rope, err = os.Pipe()
	require.NoError(t, err)
	f.lay.Hello = wire.Hello{Channels: fakeChannels, Mailboxes: fakeMailboxes, Islands: 1, Slots: fakeSlots}
	f.lay.ParkOffset = 4096
	f.lay.MailboxOffset = 8192
	f.lay.MailboxStride = 4096
	f.lay.Size = f.lay.MailboxOffset + fakeMailboxes*f.lay.MailboxStride
	f.mem = make([]byte, f.lay.Size+4096)
	pad := -uintptr(unsafe.Pointer(&f.mem[0])) & 4095
	f.lay.base = unsafe.Pointer(&f.mem[pad])
	f.area = (*wire.Area)(f.lay.base)
	f.boot(1)
	f.beating.Go(f.heart)
	t.Cleanup(func() {
		close(f.stop)
		f.beating.Wait()
		f.rope.Close()
		require.Zero(t, f.mapped.Load(), "buffers that are still mapped")
		f.bell.Close()
	})
	return f
}

// boot lays the area.
func (f *fake) boot(epoch uint32) {
	f.pulse.Lock()
	defer f.pulse.Unlock()
	clear(unsafe.Slice((*byte)(f.lay.base), f.lay.Size))
	f.h2dHead, f.d2hTail = [fakeMailboxes]uint64{}, [fakeMailboxes]uint64{}
	a := f.area
	a.Magic, a.Major, a.Minor = wire.Magic, abi.Major, abi.Minor
	a.Size, a.ParkOffset, a.MailboxOffset, a.MailboxStride = f.lay.Size, f.lay.ParkOffset, f.lay.MailboxOffset, f.lay.MailboxStride
	a.Epoch = epoch
	a.DeviceHello.Header = uint64(wire.MakeHeader(wire.TypeHello, abi.PayloadSize, uint8(epoch), 0, 0))
	*a.DeviceHello.Hello() = wire.Hello{
		Magic: wire.Magic, Major: abi.Major, Capabilities: wire.CapLoad, Channels: fakeChannels,
		Mailboxes: fakeMailboxes, Islands: 1, Slots: fakeSlots, Window: fakeWindow, BeatMS: f.beatMS,
		MaxTransfer: 1 << 40, ReadManagers: fakeMailboxes, WriteManagers: fakeMailboxes, Contexts: 8,
	}
	atomic.StoreUint32(&a.State, wire.DeviceReady)
}

// heart writes heartbeats until the test ends.
func (f *fake) heart() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		if f.mute.Load() {
			continue
		}
		f.pulse.Lock()
		f.writeBeat()
		f.pulse.Unlock()
	}
}

// writeBeat writes a heartbeat. Must hold pulse.
func (f *fake) writeBeat() {
	var s wire.Slot
	beat := f.beat.Add(1)
	*s.Heartbeat() = wire.Heartbeat{Beat: beat, Processes: 3, Parked: 7}
	to := &f.area.Heartbeat
	atomic.StoreUint64(&to.Header, 0)
	for i := range s.Payload {
		atomic.StoreUint64(&to.Payload[i], s.Payload[i])
	}
	atomic.StoreUint64(&to.Header, uint64(wire.MakeHeader(wire.TypeHeartbeat, abi.PayloadSize, 1, uint16(beat), 0)))
}

func (f *fake) Area() (unsafe.Pointer, uint64) { return f.lay.base, f.lay.Size }
func (f *fake) Doorbell() *os.File             { return f.bell }
func (f *fake) Yield()                         { runtime.Gosched() }
func (f *fake) Assist() bool                   { f.assists.Add(1); return false }
func (f *fake) Close() error                   { return f.bell.Close() }

// Ring wakes the device that run started.
func (f *fake) Ring(int) {
	f.rings.Add(1)
	select {
	case f.rung <- struct{}{}:
	default:
	}
}

// Map shifts addresses, so that one that was not mapped is seen.
func (f *fake) Map(data []byte) (uint64, error) {
	if err := f.noMap; err != nil {
		return 0, err
	}
	f.mapped.Add(1)
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))) + fakeShift, nil
}

func (f *fake) Unmap(address, size uint64) { f.mapped.Add(-1) }

func (f *fake) Fence() {
	f.fences.Add(1)
	if f.onFence != nil {
		f.onFence()
	}
}

func (f *fake) Restart(context.Context) error {
	if f.noBoot {
		return bridge.ErrNoMemory
	}
	mute := f.mute.Swap(true)
	f.boot(f.area.Epoch + 1)
	f.mute.Store(mute)
	return nil
}

// open opens the device; it is closed with the test.
func (f *fake) open() *device {
	d, err := Open(context.Background(), f, bridge.Info{Address: "fake:", Driver: "fake"}, nil)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, d.Close()) })
	return d.(*device)
}

// take waits for the host's next message in a mailbox.
func (f *fake) take(m int) *wire.Slot {
	f.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); runtime.Gosched() {
		if s := f.poll(m); s != nil {
			return s
		}
	}
	f.t.Fatal("no message from the host")
	return nil
}

// poll takes the host's next message, nil if there is none.
func (f *fake) poll(m int) *wire.Slot {
	var s wire.Slot
	if !f.pollInto(m, &s) {
		return nil
	}
	return &s
}

// pending reports whether there is a message from the host.
func (f *fake) pending(m int) bool {
	h2d, _, _, _ := f.lay.mailbox(m)
	i := f.h2dHead[m]
	return wire.Header(atomic.LoadUint64(&h2d[i%fakeSlots].Header)).Phase() == (i/fakeSlots+1)&1
}

// pollInto is poll without an allocation.
func (f *fake) pollInto(m int, s *wire.Slot) bool {
	if !f.pending(m) {
		return false
	}
	h2d, _, head, _ := f.lay.mailbox(m)
	*s = h2d[f.h2dHead[m]%fakeSlots]
	f.h2dHead[m]++
	atomic.StoreUint64(head, f.h2dHead[m])
	return true
}

// expect takes a message and checks its type.
func (f *fake) expect(m int, want wire.Type) *wire.Slot {
	f.t.Helper()
	s := f.take(m)
	require.Equal(f.t, want, wire.Header(s.Header).Type(), "type of %+v", s)
	return s
}

// put writes one message to the host, and rings if a caller sleeps.
func (f *fake) put(m int, h wire.Header, s wire.Slot) {
	f.place(m, h, s)
	if atomic.LoadUint32(f.lay.park(h.Channel())) != 0 {
		f.ringHost()
	}
}

// place writes one message to the host.
func (f *fake) place(m int, h wire.Header, s wire.Slot) {
	_, d2h, _, head := f.lay.mailbox(m)
	i := f.d2hTail[m]
	if i-atomic.LoadUint64(head) >= fakeSlots {
		f.waitForRoom(head, i)
	}
	to := &d2h[i%fakeSlots]
	to.Payload = s.Payload
	f.d2hTail[m]++
	atomic.StoreUint64(&to.Header, uint64(h.WithPhase((i/fakeSlots+1)&1)))
}

// waitForRoom waits until the host has taken enough that slot i is free.
func (f *fake) waitForRoom(head *uint64, i uint64) {
	for end := time.Now().Add(patience); i-atomic.LoadUint64(head) >= fakeSlots; runtime.Gosched() {
		f.ringHost()
		if time.Now().After(end) {
			f.t.Fatal("no room for a message to the host")
		}
	}
}

var ring = []byte{1}

func (f *fake) ringHost() { _, _ = f.rope.Write(ring) }

// header makes a header for the channel under test.
func (f *fake) header(t wire.Type, length int, id uint64) wire.Header {
	return wire.MakeHeader(t, length, uint8(f.area.Epoch), uint16(id), fakeTarget)
}

const fakeMailbox = fakeTarget % fakeMailboxes

// ack answers with a completion record.
func (f *fake) ack(t wire.Type, a wire.Ack) {
	var s wire.Slot
	*s.Ack() = a
	f.put(fakeMailbox, f.header(t, abi.PayloadSize, a.Transaction), s)
}

// note answers with a note.
func (f *fake) note(t wire.Type, id uint64, d abi.Direction) {
	var s wire.Slot
	*s.Note() = wire.Note{Transaction: id, Direction: uint32(d)}
	f.put(fakeMailbox, f.header(t, abi.PayloadSize, id), s)
}

// message offers a direct message.
func (f *fake) message(id uint64, text string) {
	var s wire.Slot
	copy(s.Bytes()[:], text)
	f.put(fakeMailbox, f.header(wire.TypeDirect, len(text), id), s)
}

// begin offers a transfer.
func (f *fake) begin(id, size uint64) {
	var s wire.Slot
	*s.Begin() = wire.Begin{Transaction: id, Size: size}
	f.put(fakeMailbox, f.header(wire.TypeIndBegin, abi.PayloadSize, id), s)
}

// close reports that the device's process closed some halves, or agrees to the
// host's last close.
func (f *fake) close(halves uint32, generation uint64) {
	var s wire.Slot
	*s.Close() = wire.Close{Halves: halves, Generation: generation}
	f.put(fakeMailbox, f.header(wire.TypeClose, abi.PayloadSize, generation), s)
}

// serve answers one control request.
func (f *fake) serve(answer func(*wire.Control)) {
	f.t.Helper()
	s := f.expect(0, wire.TypeDirect)
	f.serveSlot(s, answer)
}

func (f *fake) serveSlot(s *wire.Slot, answer func(*wire.Control)) {
	var a wire.Slot
	h := wire.Header(s.Header)
	*a.Ack() = wire.Ack{Transaction: uint64(h.Sequence()), State: wire.StateConsumed}
	f.put(0, wire.MakeHeader(wire.TypeAck, abi.PayloadSize, h.Epoch(), h.Sequence(), 0), a)
	answer(s.Control())
	f.put(0, wire.MakeHeader(wire.TypeDirect, abi.PayloadSize, h.Epoch(), h.Sequence(), 0), *s)
	f.expect(0, wire.TypeAck)
}

const fakeGeneration = 9

// subscribe opens the channel under test: its ids start at 1, generation 9.
func (f *fake) subscribe(d *device) *channel {
	f.t.Helper()
	var c bridge.Channel
	wait := f.async(func() (err error) {
		c, err = d.Subscribe(context.Background(), fakeTarget)
		return err
	})
	f.serve(func(r *wire.Control) {
		require.EqualValues(f.t, wire.ControlOpen, r.Op)
		require.EqualValues(f.t, fakeTarget, r.A)
		r.A, r.B, r.C = 1, 1, fakeGeneration
	})
	require.NoError(f.t, wait())
	return c.(*channel)
}

// async runs a call beside the test; the result waits for it.
func (f *fake) async(call func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return func() error {
		f.t.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			buf := make([]byte, 1<<16)
			f.t.Fatalf("call hangs\n%s", buf[:runtime.Stack(buf, true)])
			return nil
		}
	}
}

// until waits for a condition that another goroutine brings about.
func (f *fake) until(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(patience); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			f.t.Fatalf("never: %s", what)
		}
	}
}

// asleep waits until n calls are asleep.
func (f *fake) asleep(d *device, n int) {
	f.t.Helper()
	f.until("calls asleep", func() bool { return d.Stats().Blocked == n })
}

// pages returns n bytes at an odd offset in a page.
func pages(n int) []byte {
	b := make([]byte, n+2*abi.PageSize)
	pad := -uintptr(unsafe.Pointer(&b[0])) & (abi.PageSize - 1)
	return b[pad+123:][:n:n]
}

// dma returns the memory an entry names.
func dma(e wire.Entry) []byte {
	address := uintptr(e.Address() - fakeShift)
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), e.Length())
}
