//go:build cgo

package kdev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/kdev/uapi"
	_ "github.com/nfcomms/nfcomms/bridge/sim" // the module's device
)

// fakeModule plays the kernel module over the back end "sim:", by the letter of
// kmod/uapi/nfcomms.h: the conformance suite runs this package's code against
// it on machines without the module. Everything the module refuses, it refuses.
type fakeModule struct {
	t     testing.TB
	mu    sync.Mutex // guards what follows
	dev   bridge.Device
	shape uapi.Reset
	files []*fakeFile
	// What the tests set.
	uapi      uint32
	memlock   uint64 // bytes a file may pin; 0: no limit
	maxOps    int
	resetting syscall.Errno // what RESET answers
}

func newModule(t testing.TB) *fakeModule {
	m := &fakeModule{t: t, uapi: uapi.UAPIMajor<<16 | uapi.UAPIMinor, maxOps: 1 << 16}
	m.shape.Size = uint32(unsafe.Sizeof(m.shape))
	m.boot()
	t.Cleanup(func() { require.NoError(t, m.dev.Close()) })
	return m
}

// boot starts a device of the present shape.
func (m *fakeModule) boot() {
	address := "sim:?"
	for name, n := range map[string]uint32{"managers": m.shape.Mailboxes, "islands": m.shape.Islands,
		"channels": m.shape.Channels, "slots": m.shape.Slots, "window": m.shape.Window} {
		if n != 0 {
			address += fmt.Sprintf("%s=%d&", name, n)
		}
	}
	if m.shape.EMEM != 0 {
		address += fmt.Sprintf("emem=%d&", m.shape.EMEM)
	}
	// A slow heartbeat: what is tested here is not how long a device may be silent.
	address += fmt.Sprintf("beat=500ms&runs=0&target-timeout=%v", time.Duration(m.shape.TimeoutMS)*time.Millisecond) // the module knows no runs
	logger := slog.New(slog.NewTextHandler(m.t.Output(), nil))
	dev, err := bridge.Open(context.Background(), address, &bridge.Options{Logger: logger})
	require.NoError(m.t, err, address)
	m.dev = dev
}

func (m *fakeModule) device() bridge.Device {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dev
}

// over is a file whose module ends with it.
type over struct{ *fakeFile }

func (o over) close() error {
	return errors.Join(o.fakeFile.close(), o.module.device().Close())
}

func init() {
	fake = func(t *testing.T, options string) bridge.Device {
		t.Helper()
		return openOn(t, over{newModule(t).open()}, options)
	}
}

// openOn starts the back end over a file of a fake module.
func openOn(t *testing.T, k kernel, options string) *Device {
	t.Helper()
	dev, err := tryOpen(k, options)
	require.NoError(t, err)
	return dev
}

func tryOpen(k kernel, options string) (*Device, error) {
	address := "dev:0"
	if options != "" {
		address += "?" + options
	}
	a, err := bridge.ParseAddress(address)
	if err != nil {
		return nil, err
	}
	where, err := parse(a)
	if err != nil {
		return nil, err
	}
	return newDevice(k, where, &bridge.Options{})
}

// fakeFile is an open device node: a client of the module.
type fakeFile struct {
	module *fakeModule
	ending chan struct{} // closed by close
	work   sync.WaitGroup

	mu        sync.Mutex // guards what follows
	ready     []uapi.Completion
	wake      chan struct{}
	channels  map[uint32]*fakeChannel
	handle    uint32 // the last one
	flying    []*fakeOp
	free      []*fakeOp
	processes map[bridge.ProcessID]bool
	pinned    uint64
	lost      chan struct{} // closed by a reset: nothing is held any more
	unplugged error         // what read answers when nothing is ready
}

var _ kernel = (*fakeFile)(nil)

func (m *fakeModule) open() *fakeFile {
	f := &fakeFile{
		module: m, ending: make(chan struct{}), wake: make(chan struct{}, 1), lost: make(chan struct{}),
		channels: make(map[uint32]*fakeChannel), processes: make(map[bridge.ProcessID]bool),
	}
	m.mu.Lock()
	m.files = append(m.files, f)
	m.mu.Unlock()
	return f
}

// post makes a completion readable.
func (f *fakeFile) post(c uapi.Completion) {
	f.mu.Lock()
	f.ready = append(f.ready, c)
	f.mu.Unlock()
	f.notify()
}

func (f *fakeFile) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *fakeFile) read(to []uapi.Completion) (int, error) {
	for {
		f.mu.Lock()
		n := copy(to, f.ready)
		f.ready = f.ready[:copy(f.ready, f.ready[n:])]
		err := f.unplugged
		f.mu.Unlock()
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-f.wake:
		case <-f.ending:
			return 0, os.ErrClosed
		}
	}
}

// close ends everything the file started, as the module's release does.
func (f *fakeFile) close() error {
	close(f.ending)
	f.mu.Lock()
	for _, o := range f.flying {
		o.cancel()
	}
	channels, processes := f.channels, f.processes
	f.mu.Unlock()
	dev := f.module.device()
	for _, c := range channels {
		_ = c.ch.Close()
	}
	for id := range processes {
		_ = dev.Stop(context.Background(), id) // it may be gone, or all of the device
	}
	f.work.Wait()
	return nil
}

func (f *fakeFile) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	switch number {
	case uapi.IOCInfo:
		return f.info((*uapi.Info)(argument))
	case uapi.IOCHealth:
		return f.health((*uapi.Health)(argument))
	case uapi.IOCSubmit:
		return f.submit((*uapi.Submit)(argument))
	case uapi.IOCCancel:
		return f.cancel((*uapi.Cancel)(argument))
	case uapi.IOCReset:
		return f.reset((*uapi.Reset)(argument))
	case uapi.IOCChannel:
		return f.channel((*uapi.Channel)(argument))
	default:
		return syscall.ENOTTY
	}
}

// sized reports whether a structure has the size of its type.
func sized[T any](_ *T, size uint32) syscall.Errno {
	switch want := uint32(unsafe.Sizeof(*new(T))); {
	case size < want:
		return syscall.EINVAL
	case size > want:
		return syscall.E2BIG
	}
	return 0
}

// fakeVersion is the version of the module; the rest of its field is zero.
const fakeVersion = "1.2.3-fake"

func (f *fakeFile) info(i *uapi.Info) syscall.Errno {
	if errno := sized(i, i.Size); errno != 0 {
		return errno
	}
	d := f.module.device().Info()
	var capabilities uint32
	if d.CanLoad {
		capabilities = abi.CapLoad
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	limit := f.module.memlock
	if limit == 0 {
		limit = ^uint64(0)
	}
	*i = uapi.Info{
		Size: i.Size, UAPI: f.module.uapi, ABI: uint32(d.Major<<16 | d.Minor), Epoch: d.Epoch,
		Channels: uint32(d.Channels), Mailboxes: uint32(d.Mailboxes), Islands: uint32(d.Islands),
		Slots: uint32(d.Slots), Window: uint32(d.Window), BeatMS: uint32(d.Beat.Milliseconds()),
		ReadManagers: uint32(d.ReadManagers), WriteManagers: uint32(d.WriteManagers),
		Contexts: uint32(d.Contexts), Capabilities: capabilities, Vectors: 1,
		MaxOperations: uint32(f.module.maxOps), MaxTransfer: d.MaxTransfer, MemlockLimit: limit,
		MemlockUsed: f.pinned,
	}
	copy(i.Driver[:], fakeVersion)
	return 0
}

func (f *fakeFile) health(h *uapi.Health) syscall.Errno {
	if errno := sized(h, h.Size); errno != 0 {
		return errno
	}
	dev := f.module.device()
	s := dev.Stats()
	beat, err := dev.Health()
	*h = uapi.Health{
		Size: h.Size, Beat: beat.Beat, AgeNS: uint64(beat.Age), Diagnostic: uint32(beat.Diagnostic),
		Processes: uint32(beat.Processes), Messages: beat.Messages, Bytes: beat.Bytes,
		DeviceDropped: beat.Dropped, Parked: beat.Queued, Interrupts: s.Wakeups, Doorbells: s.Doorbells,
		Spurious: s.Spurious, Dropped: s.Dropped, Faults: s.Faults, Resets: s.Resets, Lists: s.Lists, Repeated: s.Repeated,
	}
	switch {
	case errors.Is(err, bridge.ErrFault):
		h.State = uapi.StateFault
	case err != nil:
		h.State = uapi.StateLost
	}
	f.mu.Lock()
	h.Operations, h.Pinned = uint32(len(f.flying)), f.pinned
	f.mu.Unlock()
	return 0
}

func (f *fakeFile) channel(c *uapi.Channel) syscall.Errno {
	if errno := sized(c, c.Size); errno != 0 {
		return errno
	}
	f.mu.Lock()
	ch := f.channels[c.Channel]
	if ch == nil {
		f.mu.Unlock()
		return syscall.ENOENT
	}
	c.Halves = uint32((uapi.H2D | uapi.D2H) &^ ch.closed)
	f.mu.Unlock()
	s, halves := ch.ch.Stats(), ch.ch.Halves()
	c.Target, c.Lists, c.Repeated = uint32(ch.ch.Target()), s.Lists, s.Repeated
	c.H2D, c.D2H = ch.halves[abi.H2D].describe(halves[abi.H2D]), ch.halves[abi.D2H].describe(halves[abi.D2H])
	return 0
}

// describe says of the half what the module does: its queue is the module's, the rest the device's.
func (h *fakeHalf) describe(s bridge.Half) uapi.HalfInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return uapi.HalfInfo{
		State: uint32(s.State), Queued: uint32(max(len(h.queue)-1, 0)), Transaction: s.Transaction,
		SleptNS: uint64(s.Slept),
	}
}

func (f *fakeFile) reset(r *uapi.Reset) syscall.Errno {
	switch errno := sized(r, r.Size); {
	case errno != 0:
		return errno
	case r.Flags != 0 || r.Rsvd != [4]uint64{}:
		return syscall.EINVAL
	}
	m := f.module
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resetting != 0 {
		return m.resetting
	}
	for _, f := range m.files {
		f.forget()
	}
	if *r != m.shape {
		m.shape = *r
		require.NoError(m.t, m.dev.Close())
		m.boot()
		return 0
	}
	if err := m.dev.Reset(context.Background()); err != nil {
		return syscall.EIO
	}
	return 0
}

// forget ends what is held, and takes the channels of the old epoch away.
func (f *fakeFile) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.lost)
	f.lost = make(chan struct{})
	for _, c := range f.channels {
		c.end()
	}
	clear(f.channels)
	clear(f.processes)
}

// unplug is the device's removal: nothing completes any more.
func (f *fakeFile) unplug(err error) {
	f.mu.Lock()
	f.unplugged = err
	f.mu.Unlock()
	f.notify()
}
