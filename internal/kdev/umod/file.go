package umod

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Options adjusts a module. The zero value is valid.
type Options struct {
	// MaxOperations bounds the operations of a file in flight or unread; 0: 65,536.
	MaxOperations int
	// Boot opens a device of another shape for a RESET that asks for one, after the old
	// one was closed. Without it such a RESET is EINVAL.
	Boot func(shape *uapi.Reset) (bridge.Device, error)
}

// Module is a device as the kernel module offers it: to files, each with channels and
// processes of its own. All methods are safe for concurrent use.
type Module struct {
	options Options

	restarting sync.Mutex // one reset at a time; before mu

	mu    sync.Mutex // guards what follows; before a file's
	dev   bridge.Device
	shape uapi.Reset // that the device has now
	files map[*File]struct{}
}

// New returns a module over a device, which is the module's from then on.
func New(dev bridge.Device, o Options) *Module {
	if o.MaxOperations == 0 {
		o.MaxOperations = 1 << 16
	}
	m := &Module{options: o, dev: dev, files: make(map[*File]struct{})}
	m.shape.Size = uint32(unsafe.Sizeof(m.shape))
	return m
}

// Device returns the device as it is now.
func (m *Module) Device() bridge.Device {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dev
}

// Close closes the device, which ends every operation, and then the files. Nobody may use
// them any more.
func (m *Module) Close() error {
	err := m.Device().Close()
	m.mu.Lock()
	files := m.files
	m.files = make(map[*File]struct{})
	m.mu.Unlock()
	for f := range files {
		f.end()
	}
	return err
}

// File is a client of a module, as an open device node is.
type File struct {
	module   *Module
	readable func(bool)
	ending   chan struct{} // closed by Close
	work     sync.WaitGroup
	ids      atomic.Uint64 // of operations, that were given

	mu        sync.Mutex    // guards what follows
	ready     []uapi.Record // the first taken of them were
	taken     int
	channels  map[uint32]*channel
	listeners map[uint32]bridge.Listener
	handle    uint32 // the last one, of either
	flying    []*operation
	free      []*operation
	processes map[bridge.ProcessID]bool
	areas     map[uint32]*area // by handle
	area      uint32           // the last handle
	lost      chan struct{}    // closed by a reset: nothing is held any more
}

// Open returns a new file. readable is called when completions are there to be taken and when
// none is left, in order; it must neither block nor call the file.
func (m *Module) Open(readable func(bool)) *File {
	f := &File{
		module: m, readable: readable, ending: make(chan struct{}), lost: make(chan struct{}),
		channels: make(map[uint32]*channel), processes: make(map[bridge.ProcessID]bool),
		areas: make(map[uint32]*area), listeners: make(map[uint32]bridge.Listener),
	}
	m.mu.Lock()
	m.files[f] = struct{}{}
	m.mu.Unlock()
	return f
}

// post makes a completion readable.
func (f *File) post(r uapi.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = append(f.ready, r)
	if len(f.ready) == f.taken+1 {
		f.readable(true)
	}
}

// Take stores completions that are there, in their order, and returns how many.
func (f *File) Take(to []uapi.Completion) int {
	return f.take(len(to), func(i int, r *uapi.Record) { to[i] = r.Completion })
}

// TakeRecords is Take for a file that asked for records.
func (f *File) TakeRecords(to []uapi.Record) int {
	return f.take(len(to), func(i int, r *uapi.Record) { to[i] = *r })
}

func (f *File) take(room int, store func(i int, r *uapi.Record)) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(room, len(f.ready)-f.taken)
	for i := range n {
		store(i, &f.ready[f.taken+i])
	}
	f.taken += n
	if 2*f.taken >= len(f.ready) {
		f.ready = f.ready[:copy(f.ready, f.ready[f.taken:])]
		f.taken = 0
	}
	if n > 0 && len(f.ready) == f.taken {
		f.readable(false)
	}
	return n
}

// Close ends everything the file started, as the module's release does.
func (f *File) Close() error {
	f.module.mu.Lock()
	delete(f.module.files, f)
	f.module.mu.Unlock()
	f.end()
	return nil
}

func (f *File) end() {
	close(f.ending)
	f.mu.Lock()
	for _, o := range f.flying {
		o.cancel()
	}
	f.mu.Unlock()
	f.endChannels()
	f.work.Wait()
	f.endChannels() // what was subscribed meanwhile
	for id := range f.processes {
		_ = f.module.Device().Stop(context.Background(), id) // it may have ended, or all of the device
	}
	for _, a := range f.areas {
		if a.memory != nil {
			_ = a.memory.Close()
		}
	}
}

// endChannels closes the channels and listeners, and so ends the operations on them.
func (f *File) endChannels() {
	f.mu.Lock()
	channels, listeners := maps.Clone(f.channels), maps.Clone(f.listeners)
	f.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range channels {
		_ = c.ch.Close()
	}
}

// Ioctl makes one call, whose argument is the structure of the number. It does
// not wait for the device, but for RESET. CALL is [File.Call].
func (f *File) Ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
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
	case uapi.IOCSetup:
		return f.setup((*uapi.Setup)(argument))
	case uapi.IOCRegister:
		return f.register((*uapi.Register)(argument))
	case uapi.IOCUnregister:
		return f.unregister((*uapi.Unregister)(argument))
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

// busyPollMax is the most microseconds that a file may ask for.
const busyPollMax = 10000

// setup takes records and completions alike: Take and TakeRecords copy what was asked for. No read of
// this module waits for an interrupt that could be saved by busy polling. It knows no larger records.
func (f *File) setup(s *uapi.Setup) syscall.Errno {
	const least, most = uint32(unsafe.Sizeof(uapi.Completion{})), uint32(unsafe.Sizeof(uapi.Record{}))
	switch errno := sized(s, s.Size); {
	case errno != 0:
		return errno
	case s.Flags != 0 || s.Rsvd != [4]uint32{} || s.CompletionSize < least || s.BusyPollUS > busyPollMax:
		return syscall.EINVAL
	case s.CompletionSize > most:
		return syscall.E2BIG
	}
	return 0
}

func (f *File) info(i *uapi.Info) syscall.Errno {
	if errno := sized(i, i.Size); errno != 0 {
		return errno
	}
	d := f.module.Device().Info()
	var capabilities uint32
	if d.CanLoad {
		capabilities = wire.CapLoad
	}
	if d.Runs {
		capabilities |= wire.CapRuns
	}
	*i = uapi.Info{
		Size: i.Size, UAPI: uapi.UAPIMajor<<16 | uapi.UAPIMinor, ABI: uint32(d.Major<<16 | d.Minor), Epoch: d.Epoch,
		Channels: uint32(d.Channels), Mailboxes: uint32(d.Mailboxes), Islands: uint32(d.Islands),
		Slots: uint32(d.Slots), Window: uint32(d.Window), BeatMS: uint32(d.Beat.Milliseconds()),
		ReadManagers: uint32(d.ReadManagers), WriteManagers: uint32(d.WriteManagers),
		Contexts: uint32(d.Contexts), Capabilities: capabilities, Vectors: 1,
		MaxOperations: uint32(f.module.options.MaxOperations), MaxTransfer: d.MaxTransfer,
		MemlockLimit: ^uint64(0), // nothing is pinned
	}
	copy(i.Driver[:len(i.Driver)-1], d.Driver)
	return 0
}

func (f *File) health(h *uapi.Health) syscall.Errno {
	if errno := sized(h, h.Size); errno != 0 {
		return errno
	}
	dev := f.module.Device()
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
	h.Operations = uint32(len(f.flying))
	h.Regions = uint64(len(f.areas))
	f.mu.Unlock()
	return 0
}

func (f *File) channel(c *uapi.Channel) syscall.Errno {
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
	c.H2D, c.D2H = ch.halves[abi.H2D].describe(halves.H2D), ch.halves[abi.D2H].describe(halves.D2H)
	return 0
}

// describe says of the half what the module does: its queue is the module's, the rest the device's.
func (h *half) describe(s bridge.Half) uapi.HalfInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return uapi.HalfInfo{
		State: uint32(s.State), Queued: uint32(max(len(h.queue)-1, 0)), Transaction: s.Transaction,
		SleptNS: uint64(s.Slept),
	}
}

func (f *File) reset(r *uapi.Reset) syscall.Errno {
	switch errno := sized(r, r.Size); {
	case errno != 0:
		return errno
	case r.Flags != 0 || r.Rsvd != [4]uint64{}:
		return syscall.EINVAL
	}
	m := f.module
	m.restarting.Lock()
	defer m.restarting.Unlock()
	m.mu.Lock()
	dev, same := m.dev, *r == m.shape
	if !same && m.options.Boot == nil {
		m.mu.Unlock()
		return syscall.EINVAL
	}
	for f := range m.files {
		f.forget()
	}
	m.mu.Unlock()
	if same {
		return resetErrno(dev.Reset(context.Background()))
	}
	return resetErrno(m.boot(dev, r))
}

// resetErrno returns the errno of a reset.
func resetErrno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	if status, ok := bridge.StatusOf(err); ok {
		code, _ := bridge.CodeOf(status)
		return code.Errno
	}
	return syscall.EIO
}

// boot puts a device of another shape in the place of dev. Must hold restarting.
func (m *Module) boot(dev bridge.Device, shape *uapi.Reset) error {
	if err := dev.Close(); err != nil {
		return err
	}
	dev, err := m.options.Boot(shape)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.dev, m.shape = dev, *shape
	m.mu.Unlock()
	return nil
}

// forget ends what is held. Channels of the old epoch stay, of no use, until they are closed.
func (f *File) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.lost)
	f.lost = make(chan struct{})
	for _, c := range f.channels {
		c.lost = true
	}
	clear(f.processes)
}
