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
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/kdev/umod"
	_ "github.com/nfcomms/nfcomms/internal/sim" // the module's device
	"github.com/nfcomms/nfcomms/internal/spectest"
)

// fakeModule plays the kernel module over the back end "sim:" with what tests set: the
// conformance suite runs this package's code against it on machines without the module.
type fakeModule struct {
	*umod.Module
	uapi      uint32
	memlock   uint64        // bytes an operation may pin; 0: no limit
	resetting syscall.Errno // what RESET answers
	dir       string        // describes the card, as in sysfs
	registers *registers    // of the card; nil: the module has no register access
}

func newModule(t testing.TB) *fakeModule { return boundModule(t, 0) }

// boundModule is a module whose files take so many operations at a time.
func boundModule(t testing.TB, operations int) *fakeModule {
	dev, err := boot(t, &uapi.Reset{})
	require.NoError(t, err)
	m := moduleOver(dev, umod.Options{
		MaxOperations: operations,
		Boot:          func(shape *uapi.Reset) (bridge.Device, error) { return boot(t, shape) },
	})
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func moduleOver(dev bridge.Device, o umod.Options) *fakeModule {
	return &fakeModule{Module: umod.New(dev, o), uapi: uapi.UAPIMajor<<16 | uapi.UAPIMinor}
}

// boot starts a device of a shape.
func boot(t testing.TB, shape *uapi.Reset) (bridge.Device, error) {
	address := "sim:?"
	for name, n := range map[string]uint32{"managers": shape.Mailboxes, "islands": shape.Islands,
		"channels": shape.Channels, "slots": shape.Slots, "window": shape.Window} {
		if n != 0 {
			address += fmt.Sprintf("%s=%d&", name, n)
		}
	}
	if shape.EMEM != 0 {
		address += fmt.Sprintf("emem=%d&", shape.EMEM)
	}
	// A slow heartbeat: what is tested here is not how long a device may be silent.
	address += fmt.Sprintf("beat=500ms&target-timeout=%v", time.Duration(shape.TimeoutMS)*time.Millisecond)
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	dev, err := bridge.Open(context.Background(), address, &bridge.Options{Logger: logger})
	if err != nil {
		return nil, err
	}
	return spectest.Verified(t, dev), nil
}

// over is a file whose module ends with it.
type over struct{ *fakeFile }

func (o over) close() error {
	return errors.Join(o.fakeFile.close(), o.module.Close())
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

// fakeFile is an open device node.
type fakeFile struct {
	*umod.File
	module *fakeModule
	wake   chan struct{}
	ending chan struct{} // closed by close

	mu        sync.Mutex    // guards what follows
	posted    []uapi.Record // by a test
	unplugged error         // what read answers when nothing is ready
}

var _ kernel = (*fakeFile)(nil)

func (m *fakeModule) open() *fakeFile {
	f := &fakeFile{module: m, wake: make(chan struct{}, 1), ending: make(chan struct{})}
	f.File = m.Open(func(bool) { f.notify() })
	return f
}

func (f *fakeFile) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// post makes a completion readable that is of no operation.
func (f *fakeFile) post(c uapi.Completion) {
	f.mu.Lock()
	f.posted = append(f.posted, uapi.Record{Completion: c})
	f.mu.Unlock()
	f.notify()
}

// unplug is the device's removal: nothing completes any more.
func (f *fakeFile) unplug(err error) {
	f.mu.Lock()
	f.unplugged = err
	f.mu.Unlock()
	f.notify()
}

func (f *fakeFile) read(to []uapi.Record) (int, error) {
	for {
		f.mu.Lock()
		n := copy(to, f.posted)
		f.posted = f.posted[:copy(f.posted, f.posted[n:])]
		err := f.unplugged
		f.mu.Unlock()
		n += f.TakeRecords(to[n:])
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

func (f *fakeFile) registers(number uintptr, argument unsafe.Pointer) syscall.Errno {
	if f.module.registers == nil {
		return syscall.ENOTTY
	}
	return f.module.registers.ioctl(number, argument)
}

func (f *fakeFile) sysfs() string { return f.module.dir }

func (f *fakeFile) close() error {
	close(f.ending)
	return f.Close()
}

func (f *fakeFile) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	m := f.module
	switch {
	case number == uapi.IOCReset && m.resetting != 0:
		return m.resetting
	case number == uapi.IOCSubmit && m.memlock != 0 && f.overLimit((*uapi.Submit)(argument)):
		return 0
	}
	errno := f.Ioctl(number, argument)
	if number == uapi.IOCInfo && errno == 0 {
		i := (*uapi.Info)(argument)
		i.UAPI = m.uapi
		copy(i.Driver[:], fakeVersion)
		if m.memlock != 0 {
			i.MemlockLimit = m.memlock
		}
	}
	return errno
}

// fakeVersion is the version of the module; the rest of its field is zero.
const fakeVersion = "1.2.3-fake"

// overLimit ends a single operation that would pin more than the limit.
func (f *fakeFile) overLimit(s *uapi.Submit) bool {
	o := *(**uapi.Op)(unsafe.Pointer(&s.Ops))
	if s.Count != 1 || o.Address == 0 || o.Length <= f.module.memlock {
		return false
	}
	s.Accepted = 1
	f.post(uapi.Completion{UserData: o.UserData, Opcode: o.Opcode, Error: uint32(syscall.ENOMEM), Limit: f.module.memlock})
	return true
}
