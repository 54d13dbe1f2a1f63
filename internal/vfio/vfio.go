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
	arena.Port
	bell *os.File // eventfd of vector 0
	conn *conn    // of the present epoch; Restarting guards it
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
	p := &port{Port: arena.Port{Path: o.path, Log: log}, bell: os.NewFile(uintptr(fd), "nfcomms-interrupt")}
	if err := p.attach(ctx); err != nil {
		_ = p.bell.Close()
		return nil, err
	}
	return p, nil
}

// attach connects, and prepares the function from its reset on. Nobody uses the port meanwhile.
func (p *port) attach(ctx context.Context) error {
	c, err := dial(ctx, p.Path)
	if err != nil {
		return err
	}
	defer c.kickAtEnd(ctx)()
	if err = p.prepare(c); err == nil {
		err = c.boot(ctx)
	}
	if err != nil {
		c.close()
		return err
	}
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
	return p.Join(c)
}

// mapArea maps the BAR with the mailboxes.
func (p *port) mapArea(c *conn) error {
	size, file, err := c.mailboxes()
	if err != nil {
		return err
	}
	defer unix.Close(file)
	return p.MapArea(file, size)
}

// linked returns the present connection.
func (p *port) linked() *conn {
	p.Restarting.RLock()
	defer p.Restarting.RUnlock()
	return p.conn
}

// Ring writes an island's doorbell register.
func (p *port) Ring(island int) {
	p.linked().post(pci.BarRegisters, pci.RegDoorbell+4*uint64(island), 1)
}

// Doorbell returns the eventfd of the interrupt.
func (p *port) Doorbell() *os.File { return p.bell }

// Fence stops all DMA. A process that does not answer soon keeps the memory that it has, and this
// process copies of it.
func (p *port) Fence() {
	c := p.linked()
	c.kick(true)
	if err := c.fence(); errors.Is(err, os.ErrDeadlineExceeded) { // else it did, or has gone
		c.covering.Do(p.Cover)
	}
}

// Restart ends the epoch and boots the next, of the process that is there now.
func (p *port) Restart(ctx context.Context) error {
	p.Fence()
	p.Restarting.Lock()
	defer p.Restarting.Unlock()
	c := p.conn
	c.kick(false)
	if c.Alive() {
		defer c.kickAtEnd(ctx)()
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
	p.Restarting.Lock()
	defer p.Restarting.Unlock()
	p.conn.kick(true)
	_ = p.conn.reset() // a process that is gone has ended what it did
	p.conn.close()
	p.EndMemory()
	return p.bell.Close()
}
