//go:build cgo

package sim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/nodes"
	"github.com/nfcomms/nfcomms/internal/region"
	"github.com/nfcomms/nfcomms/internal/wire"
)

func init() { bridge.Register("sim", open) }

// missing is what this build lacks: nothing.
var missing error

func open(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
	opts, err := parse(a)
	if err != nil {
		return nil, err
	}
	log := logqueue.New(o.Logger)
	dev, own, err := openNear(ctx, a, opts, log)
	if err != nil {
		log.Flush()
		return nil, err
	}
	if opts.torus == [3]int{} {
		return dev, nil
	}
	t, err := newTorus(opts, own, bridge.Info{Address: a.String(), Driver: "sim"}, log)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return nodes.Join(dev, t), nil
}

// openNear opens the device that this process reaches without a fabric.
func openNear(
	ctx context.Context, a bridge.Address, o options, log *logqueue.Queue,
) (bridge.Device, *firmware.Instance, error) {
	p, err := start(o.shape, log)
	if err != nil {
		return nil, nil, fmt.Errorf("start firmware: %w", err)
	}
	dev, err := mailbox.Open(ctx, p, bridge.Info{Address: a.String(), Driver: "sim"}, &mailbox.Options{Logger: log.Logger(), Stall: o.stall})
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	return dev, p.firmware, nil
}

// port runs the firmware and is the mailbox manager's way to it.
type port struct {
	firmware *firmware.Instance
	doorbell *os.File
	log      *logPipe
	events   *logqueue.Queue

	mu   sync.RWMutex // guards area against Restart
	area unsafe.Pointer
	size uint64
}

var exposed atomic.Uint64 // the last key of memory that is given away, of all devices here

var (
	_ region.Giver   = (*port)(nil)
	_ mailbox.Port   = (*port)(nil)
	_ mailbox.Runner = (*port)(nil)
)

func start(c firmware.Config, to *logqueue.Queue) (*port, error) {
	log, err := newLogPipe(to)
	if err != nil {
		return nil, err
	}
	c.LogFD = log.writeFD()
	instance, status := firmware.Start(c)
	log.handOver()
	if status != abi.OK {
		log.Close()
		return nil, bridge.Error(status)
	}
	// The port owns a duplicate, so that closing the file and stopping the
	// firmware do not race for one descriptor.
	fd, err := unix.FcntlInt(uintptr(instance.Doorbell()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		instance.Close()
		log.Close()
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &port{firmware: instance, doorbell: os.NewFile(uintptr(fd), "nfcomms-doorbell"), log: log, events: to}
	p.area, p.size = instance.Area()
	return p, nil
}

// Area returns the mailbox area of the present epoch.
func (p *port) Area() (unsafe.Pointer, uint64) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.area, p.size
}

// Ring wakes an island: the low half of its area word is a futex.
func (p *port) Ring(island int) {
	base, _ := p.Area()
	word := unsafe.Pointer(&(*wire.Area)(base).Island[island].Word)
	const wakePrivate = 1 | 128
	unix.Syscall(unix.SYS_FUTEX, uintptr(word), wakePrivate, 1)
}

// Yield gives way to an island that waits for this processor.
func (p *port) Yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Doorbell returns the eventfd the device rings.
func (p *port) Doorbell() *os.File { return p.doorbell }

// Assist moves one DMA piece on the calling goroutine.
func (p *port) Assist() bool { return p.firmware.Assist() }

// Map returns where the memory is in this process: the device reads and writes it there.
func (p *port) Map(data []byte) (uint64, error) {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))), nil
}

// Unmap has nothing to end.
func (p *port) Unmap(uint64, uint64) {}

// Share maps a file, which the device reaches where it is mapped.
func (p *port) Share(file int) ([]byte, error) { return arena.Shared(file) }

// Unshare ends that.
func (p *port) Unshare(mem []byte) { _ = unix.Munmap(mem) }

// Make returns memory that hosts of this process give each other.
func (p *port) Make(size int) ([]byte, error) {
	return region.Pages((size + abi.PageSize - 1) / abi.PageSize * abi.PageSize)
}

// Expose names memory: the only host of the device knows it.
func (p *port) Expose([]byte) (key uint64, err error) { return exposed.Add(1), nil }

// Fetch has none of other hosts.
func (p *port) Fetch(uint64) ([]byte, error) {
	return nil, fmt.Errorf("memory of another device: %w", bridge.ErrNotSupported)
}

// Drop unmaps memory.
func (p *port) Drop(mem []byte, _ bool) { region.FreePages(mem) }

// Run runs an island on the calling goroutine's thread.
func (p *port) Run(island int, exact bool) (undrained uint64, ran, thread bool) {
	return p.firmware.Run(island, exact)
}

// Fence turns DMA off.
func (p *port) Fence() { p.firmware.Fence() }

// Restart boots the next epoch of the firmware. A process that computes keeps a
// thread of the old one until it returns.
func (p *port) Restart(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	left, status := p.firmware.Restart()
	report(p.events, "device restarted beside a process that computes", left)
	if status != abi.OK {
		return fmt.Errorf("restart firmware: %w", bridge.Error(status))
	}
	p.area, p.size = p.firmware.Area()
	return nil
}

// Close stops the firmware. The error is a *bridge.ComputingError if a process
// keeps a thread of it.
func (p *port) Close() error {
	left := p.firmware.Close()
	p.log.Close()
	report(p.events, "device closed beside a process that computes", left)
	err := p.doorbell.Close()
	if left == nil {
		return err
	}
	return errors.Join(computing(left, bridge.ErrBusy), err)
}

// computingTime is how long a process may compute before it is to blame for a
// silent device: most of the time in which it must answer.
const computingTime = 50 * time.Millisecond

// Blame returns err, or that with the process that keeps an island silent.
func (p *port) Blame(err error) error {
	for _, c := range p.firmware.Computing(computingTime) {
		return computing(&c, err)
	}
	return err
}

// Crashed returns err, or that with the crash that ended a subscription.
func (p *port) Crashed(target uint32, generation uint64, err error) error {
	return crashed(p.firmware, target, generation, err)
}

func crashed(f *firmware.Instance, target uint32, generation uint64, err error) error {
	c := f.Crashed(0, target, generation)
	if c == nil {
		return err
	}
	return &bridge.CrashError{
		Process: bridge.ProcessID(c.Process), Program: c.Program, Island: c.Island, What: c.What, Line: c.Line(), Err: err,
	}
}

func computing(c *firmware.Computing, err error) error {
	return &bridge.ComputingError{
		Process: bridge.ProcessID(c.Process), Program: c.Program, Island: c.Island, For: c.For, Err: err,
	}
}

// report logs which process was left behind, if there is one.
func report(log *logqueue.Queue, what string, left *firmware.Computing) {
	if left != nil {
		log.Error(what, "process", left.Process, "program", left.Program, "island", left.Island, "for", left.For)
	}
}

// logPipe carries the device's log lines to the log. The write end belongs to
// the firmware's threads, so lines cost no call into Go.
type logPipe struct {
	read  *os.File
	write int
	done  sync.WaitGroup
}

func newLogPipe(to *logqueue.Queue) (*logPipe, error) {
	l := &logPipe{}
	if to == nil {
		return l, nil
	}
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	l.read, l.write = os.NewFile(uintptr(fds[0]), "nfcomms-log"), fds[1]
	l.done.Go(func() {
		lines := bufio.NewScanner(l.read)
		for lines.Scan() {
			to.Info(lines.Text(), "source", "device")
		}
	})
	return l, nil
}

// handOver closes the write end once the firmware has its duplicate.
func (l *logPipe) handOver() {
	if l.read != nil {
		syscall.Close(l.write)
	}
}

// writeFD is what the firmware duplicates; -1: there is no log.
func (l *logPipe) writeFD() int {
	if l.read == nil {
		return -1
	}
	return l.write
}

// Close waits for the last line: the firmware has closed its end.
func (l *logPipe) Close() {
	if l.read == nil {
		return
	}
	l.done.Wait()
	l.read.Close()
}
