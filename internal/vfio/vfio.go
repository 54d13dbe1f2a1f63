//go:build linux

package vfio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/fault"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/region"
)

func init() { bridge.Register(scheme, open) }

func open(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
	opts, err := parse(a)
	if err != nil {
		return nil, err
	}
	log := logqueue.New(o.Logger)
	p, err := newPort(ctx, opts, log)
	if err == nil {
		info := bridge.Info{Address: a.String(), Driver: "vfio"}
		var dev bridge.Device
		if dev, err = mailbox.Open(ctx, p, info, &mailbox.Options{Logger: log.Logger(), Stall: opts.stall}); err == nil {
			return dev, nil
		}
		err = errors.Join(err, p.Close())
	}
	log.Flush()
	return nil, err
}

// port is the mailbox manager's way to the function.
type port struct {
	options options
	log     *logqueue.Queue
	bell    *os.File // eventfd of vector 0
	memory  arena.Arenas
	copied  atomic.Bool // the log says that buffers are copied

	mu   sync.RWMutex // guards what follows against Restart
	conn *conn
	area unsafe.Pointer // it stays at its place as long as its size is the same
	size uint64
	old  []mapping // areas that were, until Close
}

// mapping is an area that is mapped.
type mapping struct {
	base unsafe.Pointer
	size uint64
}

var (
	_ mailbox.Port     = (*port)(nil)
	_ mailbox.Stager   = (*port)(nil)
	_ region.Allocator = (*port)(nil)
)

// newPort takes the function, and starts an epoch.
func newPort(ctx context.Context, o options, log *logqueue.Queue) (*port, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &port{options: o, log: log, bell: os.NewFile(uintptr(fd), "nfcomms-interrupt")}
	if err := p.attach(ctx); err != nil {
		_ = p.bell.Close()
		return nil, err
	}
	return p, nil
}

// attach connects, and prepares the function from its reset on. Nobody uses the port meanwhile.
func (p *port) attach(ctx context.Context) error {
	c, err := dial(ctx, p.options.path)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { c.kick(true) })()
	if err = p.prepare(c); err == nil {
		err = c.boot(ctx)
	}
	if err != nil {
		c.close()
		return err
	}
	c.kick(false)
	p.conn = c
	return nil
}

// prepare resets the function, maps its mailboxes, and gives it an interrupt and memory.
func (p *port) prepare(c *conn) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.reset(); err != nil {
		return err
	}
	if err := c.identify(); err != nil {
		return err
	}
	if err := p.mapArea(c); err != nil {
		return err
	}
	raw, err := p.bell.SyscallConn()
	if err != nil {
		return err
	}
	given := raw.Control(func(fd uintptr) { err = c.interrupt(int(fd)) })
	if err = errors.Join(given, err); err != nil {
		return fmt.Errorf("interrupt: %w", err)
	}
	if err := c.write(pci.BarRegisters, pci.RegVectors, 1); err != nil {
		return err
	}
	return p.memory.Join(c)
}

// mapArea maps the BAR with the mailboxes, in its place of before if it is as large.
func (p *port) mapArea(c *conn) error {
	size, file, err := c.mailboxes()
	if err != nil {
		return err
	}
	defer unix.Close(file)
	place := p.area
	if size != p.size {
		place = nil
	}
	area, err := arena.MapFile(file, place, size, 0)
	if err != nil {
		return fmt.Errorf("map mailboxes: %w", err)
	}
	if place == nil && p.area != nil {
		p.old = append(p.old, mapping{p.area, p.size})
	}
	p.area, p.size = area, size
	return nil
}

// linked returns the present connection.
func (p *port) linked() *conn {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.conn
}

// Area returns the mailbox area of the present epoch.
func (p *port) Area() (unsafe.Pointer, uint64) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.area, p.size
}

// Ring writes an island's doorbell register.
func (p *port) Ring(island int) {
	p.linked().post(pci.BarRegisters, pci.RegDoorbell+4*uint64(island), 1)
}

// Yield gives way to the device, which may wait for this processor.
func (p *port) Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Doorbell returns the eventfd of the interrupt.
func (p *port) Doorbell() *os.File { return p.bell }

// Assist has nothing to move: DMA is the device's.
func (p *port) Assist() bool { return false }

// Map returns where the device reaches memory of a region: where it lies, if it is of Alloc.
func (p *port) Map(data []byte) (uint64, error) {
	if !p.memory.Reached(data) {
		return 0, nil
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))), nil
}

// Unmap has nothing to end.
func (p *port) Unmap(uint64, uint64) {}

// Alloc returns memory that the device reaches.
func (p *port) Alloc(size int) ([]byte, error) { return p.memory.Alloc(size, true) }

// Free takes it back, and lifts a protection that its user gave it. Nobody gets memory of which the
// user has unmapped a part.
func (p *port) Free(data []byte) {
	if err := unix.Mprotect(data, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		p.log.Error("memory of Alloc is gone, and stays out of use", "address", p.options.path, "bytes", len(data), "err", err)
		return
	}
	p.Unstage(data)
}

// Stage gives memory of that kind to a transfer.
func (p *port) Stage(size int) ([]byte, uint64, error) {
	if !p.copied.Swap(true) {
		p.log.Info("buffers are copied once more: memory of Alloc is not", "address", p.options.path)
	}
	mem, err := p.memory.Alloc(size, false)
	return mem, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))), err
}

// Fill copies bytes into such memory.
func (p *port) Fill(mem, data []byte) (int, error) { return fault.Give(mem, data) }

// Unstage takes it back.
func (p *port) Unstage(mem []byte) { p.memory.Free(mem) }

// Fence stops all DMA. A process that does not answer soon keeps the memory that it has, and this
// process copies of it.
func (p *port) Fence() {
	c := p.linked()
	c.kick(true)
	if err := c.fence(); errors.Is(err, os.ErrDeadlineExceeded) { // else it did, or has gone
		c.covering.Do(p.cover)
	}
}

// cover puts copies in the place of all memory.
func (p *port) cover() {
	copied, err := p.memory.Cover()
	if err != nil {
		p.log.Error("device does not answer, and may still write to registered memory", "address", p.options.path, "err", err)
		return
	}
	p.log.Info("device does not answer, and keeps the memory that it had; calls use a copy", "address", p.options.path, "bytes", copied)
}

// Restart ends the epoch and boots the next, of the process that is there now.
func (p *port) Restart(ctx context.Context) error {
	p.Fence()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.conn
	c.kick(false)
	if c.Alive() {
		defer context.AfterFunc(ctx, func() { c.kick(true) })()
		return lost(c.boot(ctx))
	}
	c.close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return lost(p.attach(ctx))
}

// lost is an error of a device that did not come back.
func lost(err error) error {
	if err == nil || errors.Is(err, bridge.ErrDeviceLost) {
		return err
	}
	return fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err)
}

// Close resets the function, and gives it back.
func (p *port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn.kick(true)
	_ = p.conn.reset() // a process that is gone has ended what it did
	p.conn.close()
	p.memory.End()
	for _, m := range append(p.old, mapping{p.area, p.size}) {
		_ = unix.MunmapPtr(m.base, uintptr(m.size)) // it is mapped
	}
	p.area = nil
	return p.bell.Close()
}
