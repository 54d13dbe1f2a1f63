//go:build linux

package shm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/nodes"
	"github.com/nfcomms/nfcomms/internal/region"
	"github.com/nfcomms/nfcomms/internal/shmwire"
	"github.com/nfcomms/nfcomms/internal/wire"
)

func init() { bridge.Register("shm", open) }

// farAnswer is how long the device of another node may take to answer a request that ends a call, and
// for a heartbeat: the data that its engines asked for is ahead, over sockets and links.
const farAnswer = 5 * time.Second

func open(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
	opts, err := parse(a)
	if err != nil {
		return nil, err
	}
	opts.self = someNumber()
	log := logqueue.New(o.Logger)
	info := bridge.Info{Address: a.String(), Driver: "shm"}
	dev, p, err := openHost(ctx, opts, info, log)
	if err != nil {
		log.Flush()
		return nil, err
	}
	if !p.inFabric() {
		return dev, nil
	}
	return nodes.Join(dev, &torus{port: p, options: opts, info: info, log: log, device: dev.(asker)}), nil
}

// someNumber returns one that nobody guesses, and not 0.
func someNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return binary.NativeEndian.Uint64(b[:]) | 1
}

// openHost makes this process a host of the device that the options name.
func openHost(ctx context.Context, o options, info bridge.Info, log *logqueue.Queue) (bridge.Device, *port, error) {
	p, err := connect(ctx, o, log)
	if err != nil {
		return nil, nil, err
	}
	may := &mailbox.Options{Logger: log.Logger(), Stall: o.stall}
	var way mailbox.Port = p
	if o.far {
		may.Answer, way = farAnswer, farPort{p}
	}
	info.Node, _ = shmwire.NodeOf(p.link.place)
	dev, err := mailbox.Open(ctx, way, info, may)
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	return dev, p, nil
}

// port is the mailbox manager's way to a device process.
type port struct {
	arena.Port
	options options
	link    *link // of the present epoch; Restarting guards it
}

// farPort is a port to the device of another node, whose messages the device process carries.
type farPort struct{ *port }

var _ mailbox.Carrier = farPort{}

// Ask asks the device process for the state of its fabric: any answer will do.
func (p farPort) Ask(answered func(there bool)) {
	go func() {
		_, files, err := p.linked().request(&shmwire.Message{Kind: shmwire.State}, 1)
		for _, fd := range files {
			_ = unix.Close(fd)
		}
		answered(err == nil)
	}()
}

// Share is refused: the device reaches no memory of this machine.
func (p farPort) Share(int) ([]byte, error) {
	return nil, fmt.Errorf("memory in place of another node: %w", bridge.ErrNotSupported)
}

// Make is refused likewise.
func (p farPort) Make(int) ([]byte, error) { return p.Share(0) }

// Fetch is refused likewise.
func (p farPort) Fetch(uint64) ([]byte, error) { return p.Share(0) }

var (
	_ region.Giver     = (*port)(nil)
	_ mailbox.Sharer   = (*port)(nil)
	_ mailbox.Port     = (*port)(nil)
	_ mailbox.Stager   = (*port)(nil)
	_ region.Allocator = (*port)(nil)
)

// connect makes this process a host of a device.
func connect(ctx context.Context, o options, events *logqueue.Queue) (*port, error) {
	p := &port{Port: arena.Port{Path: o.path, Log: events}, options: o}
	l, err := dial(ctx, &p.options, 0)
	if err != nil {
		return nil, err
	}
	if err := p.use(l); err != nil {
		l.close()
		return nil, err
	}
	return p, nil
}

// inFabric reports whether the device process is a node of a fabric.
func (p *port) inFabric() bool { return p.link.place != 0 }

// use maps the area of a link, and makes memory known over it.
func (p *port) use(l *link) error {
	if err := p.MapArea(l.area, 0, l.size); err != nil {
		return err
	}
	p.link = l
	return p.Join(l)
}

// Ring wakes an island: the low half of its area word is a futex of both processes.
func (p *port) Ring(island int) {
	base, _ := p.Area()
	word := unsafe.Pointer(&(*wire.Area)(base).Island[island].Word)
	const wake = 1
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(word), wake, 1)
}

// Doorbell returns the socket through which the device rings.
func (p *port) Doorbell() *os.File {
	p.Restarting.RLock()
	defer p.Restarting.RUnlock()
	return p.link.bell
}

// Fence has the device stop all DMA. A device that does not answer soon keeps the memory that it has,
// and this process copies of it: calls wait for that.
func (p *port) Fence() {
	l := p.linked()
	l.shorten()
	err := l.ask(&shmwire.Message{Kind: shmwire.Fence})
	if errors.Is(err, os.ErrDeadlineExceeded) { // else it did, or has gone
		l.covering.Do(p.Cover)
	}
}

// linked returns the link of the present epoch.
func (p *port) linked() *link {
	p.Restarting.RLock()
	defer p.Restarting.RUnlock()
	return p.link
}

// Restart takes leave of the device process and comes again, to the one that is there now.
func (p *port) Restart(ctx context.Context) error {
	p.Fence()
	old := p.linked()
	old.close()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	l, err := dial(ctx, &p.options, old.epoch)
	if err != nil {
		return fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err)
	}
	if l.place != old.place {
		l.close()
		return fmt.Errorf("%w: another node serves %s now", bridge.ErrDeviceLost, p.options.path)
	}
	defer context.AfterFunc(ctx, l.shorten)()
	p.Restarting.Lock()
	defer p.Restarting.Unlock()
	if err := p.use(l); err != nil {
		l.close()
		return fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err)
	}
	return nil
}

// Close takes leave of the device process.
func (p *port) Close() error {
	p.Restarting.Lock()
	defer p.Restarting.Unlock()
	p.link.end(fmt.Errorf("device %w", bridge.ErrClosed))
	p.link.close()
	p.EndMemory()
	return nil
}
