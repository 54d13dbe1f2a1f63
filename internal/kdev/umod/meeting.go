package umod

import (
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// Verb is the kind of a Meeting.
type Verb uint32

// Calls between hosts of a device. The module has no ioctl for any of them. kmod/lib/library.h has the same
// numbers.
const (
	Alloc    Verb = 1 + iota // memory that can be given away
	Listen                   // under the name
	Unlisten                 // end a listener
	Accept                   // the next channel of a listener
	Dial                     // open a channel to the listener of the name
	Give                     // a region to the host at the far end of a channel
	Take                     // the region that the host at the far end gives
)

// Meeting is one call of a host that meets others. It has the layout of struct umod_meeting.
type Meeting struct {
	Verb    Verb
	Handle  uint32 // of a channel or listener, also one that is made
	Region  uint32 // its handle, also of one that is made
	_       uint32
	Address uint64 // of such a region
	Size    uint64 // … and its bytes
}

// meet does what a Meeting asks for.
var meet = map[Verb]func(f *File, o *operation, m *Meeting, name string) error{
	Alloc: (*File).allocate, Listen: (*File).listen, Unlisten: (*File).unlisten, Accept: (*File).acceptHost,
	Dial: (*File).dial, Give: (*File).give, Take: (*File).takeRegion,
}

// Meet makes one call of a host that meets others, in a goroutine. m and c are filled when the function that
// later returned is called, after which nothing touches them. TakeBack ends it early.
func (f *File) Meet(m *Meeting, name string, c *uapi.Completion, later func() (over func(), errno syscall.Errno)) syscall.Errno {
	do, epoch := meet[m.Verb], f.module.Device().Info().Epoch
	if do == nil {
		return syscall.EINVAL
	}
	f.mu.Lock()
	if len(f.flying) >= f.module.options.MaxOperations {
		f.mu.Unlock()
		return syscall.EAGAIN
	}
	o := f.takeLocked(&uapi.Op{})
	o.half, o.to, o.id, o.born = nil, c, f.ids.Add(1), epoch
	f.mu.Unlock()
	var errno syscall.Errno
	if o.over, errno = later(); errno != 0 {
		f.land(o)
		return errno
	}
	f.work.Go(func() { f.complete(o, outcome(uapi.Completion{}, o, do(f, o, m, name))) })
	return 0
}

// hosts returns the device as its hosts meet.
func (f *File) hosts() (bridge.HostListener, error) {
	h, ok := f.module.Device().(bridge.HostListener)
	if !ok {
		return nil, bridge.ErrNotSupported
	}
	return h, nil
}

func (f *File) allocate(_ *operation, m *Meeting, _ string) error {
	if m.Size > regionMax {
		return syscall.EINVAL
	}
	r, err := f.module.Device().Alloc(int(m.Size))
	if err == nil {
		f.keep(r, m)
	}
	return err
}

// keep gives a region a handle.
func (f *File) keep(r bridge.Region, m *Meeting) {
	mem := r.Bytes()
	m.Address, m.Size = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))), uint64(len(mem))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.area++
	m.Region = f.area
	f.areas[f.area] = &area{address: m.Address, length: m.Size, memory: r}
}

func (f *File) listen(o *operation, m *Meeting, name string) error {
	h, err := f.hosts()
	if err != nil {
		return err
	}
	l, err := h.Listen(o.epoch(), bridge.ListenOptions{Name: name})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handle++
	m.Handle = f.handle
	f.listeners[f.handle] = l
	return nil
}

// listener returns the one of a handle.
func (f *File) listener(handle uint32) (bridge.Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.listeners[handle]; l != nil {
		return l, nil
	}
	return nil, syscall.ENOENT
}

func (f *File) unlisten(_ *operation, m *Meeting, _ string) error {
	l, err := f.listener(m.Handle)
	if err != nil {
		return err
	}
	f.mu.Lock()
	delete(f.listeners, m.Handle)
	f.mu.Unlock()
	return l.Close()
}

func (f *File) acceptHost(o *operation, m *Meeting, _ string) error {
	l, err := f.listener(m.Handle)
	if err != nil {
		return err
	}
	ch, err := l.Accept(o.epoch())
	return f.met(o, m, ch, err)
}

func (f *File) dial(o *operation, m *Meeting, name string) error {
	h, err := f.hosts()
	if err != nil {
		return err
	}
	ch, err := h.Dial(o.epoch(), name, bridge.DialOptions{})
	return f.met(o, m, ch, err)
}

// met gives a channel to another host a handle.
func (f *File) met(o *operation, m *Meeting, ch bridge.Channel, err error) error {
	if err == nil {
		m.Handle = f.add(ch, o.born)
	}
	return err
}

// mover returns a channel that carries regions.
func (f *File) mover(handle uint32) (bridge.Mover, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.channels[handle]
	if c == nil {
		return nil, syscall.ENOENT
	}
	m, ok := c.ch.(bridge.Mover)
	if !ok {
		return nil, bridge.ErrNotSupported
	}
	return m, nil
}

// give has the handle of a region end with what it gives away.
func (f *File) give(o *operation, m *Meeting, _ string) error {
	ch, err := f.mover(m.Handle)
	if err != nil {
		return err
	}
	f.mu.Lock()
	a := f.areas[m.Region]
	f.mu.Unlock()
	switch {
	case a == nil:
		return syscall.ENOENT
	case a.memory == nil:
		return bridge.ErrNotSupported
	}
	if err := ch.SendRegion(o.epoch(), a.memory); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.areas, m.Region)
	return nil
}

func (f *File) takeRegion(o *operation, m *Meeting, _ string) error {
	ch, err := f.mover(m.Handle)
	if err != nil {
		return err
	}
	r, err := ch.ReceiveRegion(o.epoch())
	if err == nil {
		f.keep(r, m)
	}
	return err
}
