//go:build cgo

package sim

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Times of a node that does not answer, when a host comes, or to what ends a call.
const (
	answerTime = 5 * time.Second // when it counts as lost: its threads may wait for a processor
	wayTime    = time.Second     // … and when no way leads there, as a host comes
	answerLook = 200 * time.Microsecond
)

// farPort is the mailbox manager's way to the device of another node: an area of this
// process's memory that packets keep like that at the device.
type farPort struct {
	near     *firmware.Near
	doorbell *os.File
	area     unsafe.Pointer
	size     uint64
	firmware *firmware.Instance // what runs there
	way      func() bool        // is there a way to the node?
}

var (
	_ mailbox.Port   = (*farPort)(nil)
	_ mailbox.Blamer = (*farPort)(nil)
)

// newFarPort takes the place of a host and waits until the device has shown itself.
func newFarPort(ctx context.Context, near *firmware.Near, there *firmware.Instance, way func() bool) (*farPort, error) {
	p := &farPort{near: near, firmware: there, way: way}
	p.area, p.size = near.Area()
	fd, err := unix.FcntlInt(uintptr(near.Doorbell()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	p.doorbell = os.NewFile(uintptr(fd), "nfcomms-doorbell")
	if err := p.Restart(ctx); err != nil {
		near.Stop()
		p.doorbell.Close()
		return nil, err
	}
	return p, nil
}

// Area returns the mailbox area; it stays where it is.
func (p *farPort) Area() (unsafe.Pointer, uint64) { return p.area, p.size }

// Ring has new slots sent.
func (p *farPort) Ring(int) { p.near.Ring() }

// Yield gives way to the nodes of the fabric.
func (p *farPort) Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Doorbell returns the eventfd by which the host is rung.
func (p *farPort) Doorbell() *os.File { return p.doorbell }

// Assist has nothing to move: DMA is the device's.
func (p *farPort) Assist() bool { return false }

// Map returns where the memory is in this process: the node reads and writes it there.
func (p *farPort) Map(data []byte) (uint64, error) {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))), nil
}

// Unmap has nothing to end.
func (p *farPort) Unmap(uint64, uint64) {}

// Fence has the node touch no memory any more.
func (p *farPort) Fence() { p.near.Fence() }

// Restart begins the next epoch of this host: the device forgets what it had of the one
// before.
func (p *farPort) Restart(ctx context.Context) error {
	if status := p.near.Start(); status != abi.OK {
		return bridge.Error(status)
	}
	begin := time.Now()
	for way := begin; atomic.LoadUint32(&(*wire.Area)(p.area).State) != wire.DeviceReady; time.Sleep(answerLook) {
		now := time.Now()
		if p.way() {
			way = now
		}
		if err := ctx.Err(); err != nil {
			return &bridge.WithdrawnError{Cause: err}
		}
		if now.Sub(begin) > answerTime || now.Sub(way) > wayTime {
			return p.Blame(fmt.Errorf("%w: no answer for %v", bridge.ErrDeviceLost, now.Sub(begin).Round(time.Millisecond)))
		}
	}
	return nil
}

// Blame says if no way leads to the node, or its device broke a rule.
func (p *farPort) Blame(err error) error {
	if _, status := p.near.Ready(); status == abi.ErrFault {
		return fmt.Errorf("%w: its device reached for memory of no transfer: %w", err, bridge.ErrFault)
	}
	if p.way() {
		return err
	}
	return fmt.Errorf("%w: no way leads there", err)
}

// Crashed returns err, or that with the crash that ended a subscription. This process is
// the node's only host.
func (p *farPort) Crashed(target uint32, generation uint64, err error) error {
	return crashed(p.firmware, target, generation, err)
}

// Close takes leave of the device.
func (p *farPort) Close() error {
	p.near.Stop()
	return p.doorbell.Close()
}
