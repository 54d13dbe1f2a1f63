//go:build linux

package vfio

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/region"
	"github.com/nfcomms/nfcomms/internal/wire"
)

func init() {
	bridge.Register(userScheme, open)
	bridge.Register(kernelScheme, open)
}

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
	arena.Port
	options options
	bell    *os.File  // eventfd of vector 0
	present *function // of the present epoch; Restarting guards it
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
	p := &port{Port: arena.Port{Path: o.path, Log: log}, options: o, bell: os.NewFile(uintptr(fd), "nfcomms-interrupt")}
	p.Restarting.Lock()
	defer p.Restarting.Unlock()
	if err := p.attach(ctx, ctx); err != nil {
		_ = p.bell.Close()
		return nil, err
	}
	return p, nil
}

// take returns the bus of the address.
func (p *port) take(ctx context.Context) (bus, error) {
	if p.options.scheme == kernelScheme {
		return system.take(p.Path, p.leave)
	}
	return dial(ctx, p.Path)
}

// leave ends DMA, and says in the mailbox area that the device serves no more: the system wants the
// function back.
func (p *port) leave() {
	p.Log.Info("the system wants the PCI function back: calls end, and Close gives it", "address", p.Path)
	if f := p.function(); f != nil {
		_ = f.fence()
	}
	p.Leave()
}

// attach takes the function, and prepares it from its reset on, within the time of a context that ends
// with ctx at the latest. Must hold Restarting.
func (p *port) attach(ctx, within context.Context) error {
	b, err := p.take(within)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(&bridge.WithdrawnError{Cause: ctx.Err()}, err)
		}
		return err
	}
	f := &function{bus: b}
	defer f.kickAtEnd(within)()
	if err = p.prepare(f); err == nil {
		err = f.boot(within)
	}
	if err != nil {
		f.close()
		return err
	}
	p.present = f
	return nil
}

// prepare resets the function, maps its mailboxes, and gives it an interrupt and memory.
func (p *port) prepare(f *function) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.reset(); err != nil {
		return err
	}
	if err := f.identify(); err != nil {
		return err
	}
	if err := f.setShape(p.options.shape); err != nil {
		return err
	}
	if err := p.mapArea(f); err != nil {
		return err
	}
	raw, err := p.bell.SyscallConn()
	if err != nil {
		return err
	}
	given := raw.Control(func(fd uintptr) { err = f.interrupt(int(fd)) })
	if err = errors.Join(given, err); err != nil {
		return fmt.Errorf("interrupt: %w", err)
	}
	if err := f.set(pci.RegVectors, 1); err != nil {
		return err
	}
	p.Window = f.window()
	return p.Join(f)
}

// mapArea maps the BAR with the mailboxes.
func (p *port) mapArea(f *function) error {
	at, err := f.mailboxes()
	if err != nil {
		return err
	}
	defer unix.Close(at.file)
	if at.size < wire.AreaSize {
		return fmt.Errorf("%w: a BAR of %d bytes for the mailboxes", bridge.ErrFault, at.size)
	}
	return p.MapArea(at.file, at.offset, at.size)
}

// function returns the present one.
func (p *port) function() *function {
	p.Restarting.RLock()
	defer p.Restarting.RUnlock()
	return p.present
}

// Ring writes an island's doorbell register.
func (p *port) Ring(island int) {
	p.function().post(pci.BarRegisters, pci.RegDoorbell+4*uint64(island), 1)
}

// Doorbell returns the eventfd of the interrupt.
func (p *port) Doorbell() *os.File { return p.bell }

// Fence stops all DMA. A process that does not answer soon keeps the memory that it has, and this
// process copies of it.
func (p *port) Fence() {
	f := p.function()
	f.kick(true)
	if err := f.fence(); errors.Is(err, os.ErrDeadlineExceeded) { // else it did, or has gone
		f.covering.Do(p.Cover)
	}
}

// Restart ends the epoch and boots the next, of the process that is there now.
func (p *port) Restart(ctx context.Context) error {
	p.Fence()
	p.Restarting.Lock()
	defer p.Restarting.Unlock()
	f := p.present
	f.kick(false)
	if f.Alive() {
		defer f.kickAtEnd(ctx)()
		return lost(f.boot(ctx))
	}
	f.close()
	within, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return lost(p.attach(ctx, within))
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
	p.Restarting.Lock()
	defer p.Restarting.Unlock()
	p.present.kick(true)
	_ = p.present.reset() // a process that is gone has ended what it did
	p.present.close()
	p.EndMemory()
	return p.bell.Close()
}
