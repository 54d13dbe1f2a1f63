package kdev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/region"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// background stands for "no context".
var background = context.Background()

// Device is a device behind the kernel module. It implements bridge.Device.
type Device struct {
	k     kernel
	where location
	log   *logqueue.Queue
	info  atomic.Pointer[bridge.Info]
	minor atomic.Uint32 // version of the module's interface
	board *bridge.Board // but for its vectors; nil: it is none
	base  uapi.Health   // counters at Open

	regions region.Table

	ops    table
	sub    submitter
	gate   gate          // calls on the device itself
	ending chan struct{} // closed when the device is: calls give up
	reaper sync.WaitGroup

	epoch    chan struct{} // room for one: serialises Reset and Close
	closed   bool
	closeErr error
	final    uapi.Health // counters when the file was closed

	mu       sync.Mutex // guards what follows
	channels map[*Channel]struct{}
	retired  bridge.ChannelStats // of closed channels

	out     atomic.Bool                              // fault or loss was said
	blocked atomic.Int64                             // calls that wait now
	meters  [2]struct{ direct, indirect meter.Path } // by abi.Direction
}

var _ bridge.Device = (*Device)(nil)

func init() { bridge.Register("dev", open) }

func open(_ context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
	where, err := parse(a)
	if err != nil {
		return nil, err
	}
	k, err := openNode(where.node)
	if err != nil {
		return nil, err
	}
	d, err := newDevice(k, where, o)
	if err != nil {
		_ = k.close()
		return nil, err
	}
	return d, nil
}

// newDevice starts the back end over an open node, which stays the caller's
// after an error.
func newDevice(k kernel, where location, o *bridge.Options) (*Device, error) {
	d := &Device{
		k: k, where: where, log: logqueue.New(o.Logger), gate: newGate(), epoch: make(chan struct{}, 1),
		ending: make(chan struct{}), channels: make(map[*Channel]struct{}),
	}
	d.sub.init(k, &d.ops)
	d.regions.Init(registrar{d})
	d.board = readBoard(k.sysfs())
	if err := d.readInfo(); err != nil {
		return nil, err
	}
	if where.reset {
		if err := d.reset(); err != nil {
			return nil, err
		}
	}
	if err := d.setup(where.busy); err != nil {
		return nil, err
	}
	if err := d.readHealth(&d.base); err != nil {
		return nil, fmt.Errorf("read health: %w", err)
	}
	d.reaper.Go(d.reap)
	return d, nil
}

// setup asks for records, and has every read of a completion look for a record for so long before it
// finds nothing.
func (d *Device) setup(wait time.Duration) error {
	s := uapi.Setup{
		Size: uint32(unsafe.Sizeof(uapi.Setup{})), CompletionSize: uint32(unsafe.Sizeof(uapi.Record{})),
		BusyPollUS: uint32((wait + time.Microsecond - 1) / time.Microsecond),
	}
	if errno := d.k.ioctl(uapi.IOCSetup, unsafe.Pointer(&s)); errno != 0 {
		return fmt.Errorf("records of completions, busy-poll: %w", errno)
	}
	return nil
}

// reap takes the completions as they arrive.
func (d *Device) reap() {
	batch := make([]uapi.Record, 64)
	for {
		n, err := d.k.read(batch)
		for i := range batch[:n] {
			d.land(&batch[i])
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, os.ErrClosed) {
			d.log.Error("no more completions", "address", d.where.address, "err", err)
		}
		for _, o := range d.ops.landAll() {
			o.got = uapi.Completion{Error: uint32(syscall.ENODEV)}
			o.finish(&d.ops)
		}
		return
	}
}

// land gives a completion to its operation.
func (d *Device) land(r *uapi.Record) {
	c := &r.Completion
	o := d.ops.land(c.UserData)
	if o == nil {
		d.log.Error("completion of no operation", "address", d.where.address, "user data", c.UserData, "opcode", c.Opcode)
		return
	}
	o.got = *c
	if o.raw.Flags&uapi.Stamped != 0 {
		o.stamps = r.Stamps
	}
	o.finish(&d.ops)
}

// wait waits for the completion of an operation, of a half if h is not nil.
// When ctx or the device ends first it withdraws the operation and returns why;
// the completion is there in any case.
func (d *Device) wait(ctx context.Context, o *op, h *half) (cause error) {
	select {
	case <-o.done:
		return nil
	default:
	}
	d.rest(h, 1)
	select {
	case <-o.done:
	case <-ctx.Done():
		cause = &bridge.WithdrawnError{Cause: ctx.Err()}
	case <-d.ending:
		cause = errDeviceClosed
	}
	if cause != nil {
		d.sub.withdraw(o)
		<-o.done
	}
	d.rest(h, -1)
	return cause
}

// rest counts a call that starts (1) or ends (-1) to wait.
func (d *Device) rest(h *half, n int32) {
	d.blocked.Add(int64(n))
	if h != nil {
		h.waiting.Add(n)
		h.parked.Add(uint64(max(n, 0)))
	}
}

// ioctl makes a call about the device, while it is open.
func (d *Device) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	if d.gate.enter() != 0 {
		return syscall.EBADF
	}
	defer d.gate.leave()
	return d.k.ioctl(number, argument)
}

// readInfo asks the module what the device is.
func (d *Device) readInfo() error {
	var i uapi.Info
	i.Size = uint32(unsafe.Sizeof(i))
	if errno := d.k.ioctl(uapi.IOCInfo, unsafe.Pointer(&i)); errno != 0 {
		return d.infoErr(errno)
	}
	d.minor.Store(i.UAPI & 0xffff)
	if i.UAPI>>16 != uapi.UAPIMajor {
		return fmt.Errorf("the module speaks interface %d.%d, this program %d.%d: %w",
			i.UAPI>>16, i.UAPI&0xffff, uapi.UAPIMajor, uapi.UAPIMinor, bridge.ErrABI)
	}
	version, _, _ := bytes.Cut(i.Driver[:], []byte{0})
	d.info.Store(&bridge.Info{
		Address: d.where.address, Driver: "dev", DriverVersion: string(version), Major: int(i.ABI >> 16), Minor: int(i.ABI & 0xffff),
		Epoch: i.Epoch, Channels: int(i.Channels), Mailboxes: int(i.Mailboxes), Islands: int(i.Islands),
		Slots: int(i.Slots), Contexts: int(i.Contexts), ReadManagers: int(i.ReadManagers),
		WriteManagers: int(i.WriteManagers), Window: int(i.Window), MaxTransfer: i.MaxTransfer,
		Beat: time.Duration(i.BeatMS) * time.Millisecond, CanLoad: i.Capabilities&wire.CapLoad != 0,
		Runs: i.Capabilities&wire.CapRuns != 0, Board: withVectors(d.board, int(i.Vectors)),
	})
	return nil
}

// Info describes the device; it does not change between resets, which another
// file may make as well.
func (d *Device) Info() bridge.Info {
	if d.gate.enter() == 0 {
		_ = d.readInfo() // a removed device stays what it was
		d.gate.leave()
	}
	return *d.info.Load()
}

// begin returns why a call with a context should not start; a context that has
// ended wins over everything else. That its epoch has not ended the module checks
// once more: another file may reset the device.
func (d *Device) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &bridge.WithdrawnError{Cause: err}
	}
	if err := d.shutErr(); err != nil || bridge.EpochOf(ctx) == 0 {
		return err
	}
	return bridge.CheckEpoch(ctx, d.Info().Epoch)
}

// Subscribe opens the channel to a target.
func (d *Device) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	if err := d.begin(ctx); err != nil {
		return nil, err
	}
	if limit := d.info.Load().Channels; uint64(t) >= uint64(limit) || t == abi.TargetControl {
		return nil, fmt.Errorf("targets are 1 to %d: %w", limit-1, bridge.ErrNotSubscribed)
	}
	var c *Channel
	err := d.call(ctx, uapi.OpSubscribe, func(o *op) { o.raw.Target = uint32(t) }, func(o *op) error {
		c = newChannel(d, o.got.Channel, t)
		d.mu.Lock()
		d.channels[c] = struct{}{}
		d.mu.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// call makes one operation that belongs to no channel: fill completes it, and
// take reads its result.
func (d *Device) call(ctx context.Context, opcode uint16, fill func(*op), take func(*op) error) error {
	if err := d.begin(ctx); err != nil {
		return err
	}
	if why := d.gate.enter(); why != 0 {
		return errDeviceClosed
	}
	defer d.gate.leave()
	o := d.ops.get(opcode, 0, 0, nil)
	defer d.ops.put(o)
	fill(o)
	o.raw.Epoch = bridge.EpochOf(ctx)
	if o.raw.Address != 0 {
		d.sub.alone(o)
	} else {
		d.sub.put(o)
	}
	if err := d.outcome(o, d.wait(ctx, o, nil)); err != nil {
		return err
	}
	return take(o)
}

// retire forgets a channel and keeps its counts.
func (d *Device) retire(c *Channel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, open := d.channels[c]; open {
		delete(d.channels, c)
		d.retired.Add(c.Stats())
	}
}

// open lists the channels that are not closed.
func (d *Device) open() []*Channel {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.channels))
}

// Reset ends every pending call with ErrDeviceLost and makes the module boot
// the device anew, in the shape of the address if that gives one. It needs
// CAP_SYS_ADMIN (os.ErrPermission). If ctx ends before the last call has left,
// the old channels are lost all the same.
func (d *Device) Reset(ctx context.Context) error {
	if err := d.alone(ctx); err != nil {
		return err
	}
	defer func() { <-d.epoch }()
	if d.closed {
		return errDeviceClosed
	}
	if bridge.CheckEpoch(ctx, d.Info().Epoch) != nil {
		return nil
	}
	old := d.open()
	if err := d.reset(); err != nil {
		return err
	}
	return d.lose(ctx, old, shutLost)
}

// alone waits until no other Reset or Close is under way.
func (d *Device) alone(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case d.epoch <- struct{}{}:
		if ctx.Err() == nil {
			return nil
		}
		<-d.epoch
	}
	return &bridge.WithdrawnError{Cause: ctx.Err()}
}

// reset makes the module end the device's epoch and boot the next.
func (d *Device) reset() error {
	shape := d.where.shape
	if errno := d.k.ioctl(uapi.IOCReset, unsafe.Pointer(&shape)); errno != 0 {
		return resetErr(errno)
	}
	d.out.Store(false)
	return d.readInfo()
}

// lose shuts channels and waits for their calls, whose operations the module
// ends by itself or that end with the device.
func (d *Device) lose(ctx context.Context, list []*Channel, why int64) error {
	for _, c := range list {
		for i := range c.halves {
			c.halves[i].gate.shut(why)
			c.halves[i].fire()
		}
	}
	for _, c := range list {
		for i := range c.halves {
			if err := c.halves[i].gate.wait(ctx); err != nil {
				return err
			}
		}
		d.retire(c)
	}
	return nil
}

// Close ends every pending call with ErrClosed and waits for them, then closes
// the file: the module stops what this file started. The device and its other
// users continue. It is idempotent.
func (d *Device) Close() error {
	d.epoch <- struct{}{}
	defer func() { <-d.epoch }()
	if d.closed {
		return d.closeErr
	}
	d.closed = true
	_ = d.readHealth(&d.final) // a removed device has none
	d.gate.shut(shutDevice)
	close(d.ending)
	_ = d.gate.wait(background)
	_ = d.lose(background, d.open(), shutDevice)
	d.regions.End()
	d.closeErr = d.k.close()
	d.reaper.Wait()
	d.log.Flush()
	return d.closeErr
}
