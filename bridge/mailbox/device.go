package mailbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fault"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/region"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// errDeviceClosed is what calls get once the device is closed.
var errDeviceClosed = fmt.Errorf("device %w", bridge.ErrClosed)

// device is a device reached through a mailbox area. It implements
// bridge.Device.
type device struct {
	port   Port
	log    *logqueue.Queue
	stall  time.Duration // as in Options
	answer time.Duration // likewise
	base   bridge.Info   // what the back end filled in

	regions region.Table
	stager  Stager // nil: the device reaches all memory

	cur     atomic.Pointer[epoch]
	serving sync.WaitGroup // the dispatcher
	bell    *os.File       // it listens to; guarded by restarting

	restarting queue // serialises Reset and Close
	closed     bool
	closeErr   error

	past    sync.Mutex          // guards retired, and moving a channel's counts there
	retired bridge.ChannelStats // of closed channels
	blocked atomic.Int64        // calls that wait now
	asking  atomic.Int64        // calls whose port asks the device for memory
	armed   atomic.Int64        // waiters of Arm
	wakeups, spurious, doorbells, full,
	dropped, faults, resets atomic.Uint64
	meters meters
	slots  atomic.Pointer[SlotLog] // for the mailboxes of later epochs
}

var _ bridge.Device = (*device)(nil)

// Options adjusts a device. The zero value is valid.
type Options struct {
	// Logger takes rare events, from a goroutine of its own: a handler holds up no call. Nil discards
	// them.
	Logger *slog.Logger
	// Stall is how long a transfer may stand still on a device that beats, before it is
	// aborted. An offer that the device seems to have lost is withdrawn as soon. 0 is 10 s; it
	// is never less than five heartbeats.
	Stall time.Duration
	// Answer is how long the device may take, at least, to answer a request that ends a call, although
	// it beats, and how long its heartbeat may be overdue. 0 is 100 ms and two heartbeats, and a
	// second. Behind links an answer follows the data before it, and each hop needs a processor.
	Answer time.Duration
}

// Open shakes hands with the device behind a port and starts the dispatcher.
// info is what the back end knows: Address and Driver. It returns ErrABI for
// a device of another ABI and ErrFault for one whose hello makes no sense; the
// port then stays the caller's.
func Open(ctx context.Context, port Port, info bridge.Info, opts *Options) (bridge.Device, error) {
	if opts == nil {
		opts = &Options{}
	}
	d := &device{port: port, base: info, log: logqueue.New(opts.Logger), stall: opts.Stall, answer: opts.Answer}
	d.stager, _ = port.(Stager)
	d.regions.Init(port)
	e, err := newEpoch(ctx, d)
	if err != nil {
		return nil, err
	}
	d.cur.Store(e)
	d.listen()
	return d, nil
}

// listen starts the dispatcher, unless there is one for this doorbell. Must hold
// restarting, or be alone.
func (d *device) listen() {
	bell := d.port.Doorbell()
	if bell == d.bell {
		return
	}
	d.serving.Wait() // the one before is closed
	d.bell = bell
	d.serving.Go(func() { d.serve(bell) })
}

// serve is the dispatcher: it drains all mailboxes whenever the device rings.
func (d *device) serve(bell *os.File) {
	var buf [8]byte
	for {
		if _, err := bell.Read(buf[:]); err != nil {
			if !errors.Is(err, os.ErrClosed) {
				d.cur.Load().fail(fmt.Errorf("%w: doorbell: %w", bridge.ErrDeviceLost, err))
			}
			return
		}
		d.wakeups.Add(1)
		d.cur.Load().watch.heed()
		n, dry := d.cur.Load().drain()
		if n == 0 {
			d.spurious.Add(1)
		}
		for !dry { // the ring is finite, and a dead one is dry
			_, dry = d.cur.Load().drain()
		}
	}
}

// blame names the process that keeps an island silent, where the port knows it.
func (d *device) blame(err error) error {
	if p, ok := d.port.(Blamer); ok {
		return p.Blame(err)
	}
	return err
}

// failed takes note of the end of an epoch. It does not wait.
func (d *device) failed(err error) {
	if errors.Is(err, bridge.ErrFault) {
		d.faults.Add(1)
	}
	d.log.Error("device out of use until reset", "address", d.base.Address, "err", err)
}

// Info describes the device; it does not change between resets.
func (d *device) Info() bridge.Info { return d.cur.Load().info(d.base) }

// Health returns the device's last heartbeat. ErrDeviceLost if it is overdue.
func (d *device) Health() (bridge.Health, error) {
	e := d.cur.Load()
	if err := e.err(); err != nil {
		return bridge.Health{}, err
	}
	return e.watch.health()
}

// begin returns the epoch for a call with a context. One that has ended wins over
// everything else. The call is made in that epoch, or fails with it.
func (d *device) begin(ctx context.Context) (*epoch, error) {
	if err := ctx.Err(); err != nil {
		return nil, &bridge.WithdrawnError{Cause: err}
	}
	e := d.cur.Load()
	if err := bridge.CheckEpoch(ctx, e.Epoch); err != nil {
		return nil, err
	}
	return e, e.err()
}

// Subscribe opens the channel to a target.
func (d *device) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	var c *channel
	switch {
	case e.isHost(uint64(t)):
		c, err = e.control.connect(ctx, t)
	case uint64(t) >= uint64(e.Hello.Channels) || t == abi.TargetControl:
		err = fmt.Errorf("targets are 1 to %d: %w", e.Hello.Channels-1, bridge.ErrNotSubscribed)
	default:
		c, err = e.control.open(ctx, uint32(t))
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Start runs a program as a new process.
func (d *device) Start(ctx context.Context, p bridge.Program) (bridge.Process, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return bridge.Process{}, err
	}
	s, err := e.control.start(ctx, p)
	if err != nil {
		return s, fmt.Errorf("program %q: %w", p.Name, err)
	}
	return s, nil
}

// Stop asks a process to return and waits until it did.
func (d *device) Stop(ctx context.Context, id bridge.ProcessID) error {
	e, err := d.begin(ctx)
	if err != nil {
		return err
	}
	if err := e.control.stop(ctx, id); err != nil {
		return fmt.Errorf("process %d: %w", id, err)
	}
	return nil
}

// Load adds the programs of an image and returns the name of the first.
func (d *device) Load(ctx context.Context, image []byte) (string, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return "", err
	}
	if e.Hello.Capabilities&wire.CapLoad == 0 {
		return "", fmt.Errorf("%w by this device", bridge.ErrNotSupported)
	}
	if len(image) == 0 {
		return "", fmt.Errorf("empty image: %w", bridge.ErrInvalid)
	}
	whole, err := d.readable(image)
	name := ""
	if err == nil {
		name, err = e.control.load(ctx, whole)
	}
	if err != nil {
		return "", fmt.Errorf("image of %d bytes: %w", len(image), err)
	}
	return name, nil
}

// imageMost is the most bytes of an image that a device takes.
const imageMost = 64 << 20

// readable returns an image whose bytes stay there while it is sent. The device waits for an image
// that was announced, so a transfer that the host itself ends in the middle would leave it waiting.
func (d *device) readable(image []byte) ([]byte, error) {
	if d.stager == nil || len(image) > imageMost { // the device itself ends it, or refuses it
		return image, nil
	}
	whole := make([]byte, len(image))
	if n, err := fault.Copy(whole, image); err != nil {
		return nil, &bridge.TransferError{Processed: uint64(n), Outstanding: uint64(len(image) - n), Err: bridge.ErrDMA}
	}
	return whole, nil
}

// Programs lists the names Start accepts.
func (d *device) Programs(ctx context.Context) ([]string, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	return e.control.programs(ctx)
}

// Memory describes one of the device's memory types.
func (d *device) Memory(ctx context.Context, kind int) (bridge.Memory, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return bridge.Memory{}, err
	}
	return e.control.memory(ctx, kind)
}

// Running reports whether a process has not returned yet.
func (d *device) Running(ctx context.Context, id bridge.ProcessID) (bool, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return false, err
	}
	r, err := e.control.call(ctx, wire.Control{Op: wire.ControlRunning, A: uint64(id)}, nil)
	return err == nil && r.B != 0, err
}

// Alloc returns a region of new memory.
func (d *device) Alloc(size int) (bridge.Region, error) {
	e := d.cur.Load()
	e.asks()
	defer e.answered()
	return d.regions.Alloc(size)
}

// asks has the heartbeat watched until answered is called: what the port asks of the device, it asks
// outside the mailboxes.
func (e *epoch) asks() {
	e.dev.asking.Add(1)
	e.watch.wakeUp()
}

// answered ends asks.
func (e *epoch) answered() { e.dev.asking.Add(-1) }

// Register makes a region of memory that is there.
func (d *device) Register(mem []byte) (bridge.Region, error) { return d.regions.Register(mem) }

// Share makes a region of all of a file that keeps its size.
func (d *device) Share(file int) (bridge.Region, uint64, error) {
	port, ok := d.port.(Sharer)
	if !ok {
		return nil, 0, fmt.Errorf("memory in place: %w", bridge.ErrNotSupported)
	}
	e := d.cur.Load()
	e.asks()
	defer e.answered()
	mem, err := port.Share(file)
	if err != nil {
		return nil, 0, err
	}
	r, err := d.regions.Add(mem, d.port.Map, port.Unshare)
	if err != nil {
		port.Unshare(mem)
		return nil, 0, err
	}
	return r, r.(*region.Region).At(mem), nil
}

// Hold keeps the region that holds all of mem until release is called, as a transfer does;
// nil if there is none.
func (d *device) Hold(mem []byte) (release func()) {
	r, err := d.regions.Use(mem)
	if r == nil || err != nil {
		return nil
	}
	return r.Done
}

// Ask has the heartbeat watched while a back end asks the device something outside the mailboxes. The
// port's Fence ends that. If it returns an error, the device is put out of use until it is reset, as by
// a fault, and its DMA is fenced.
func (d *device) Ask(something func() (lost error)) {
	e := d.cur.Load()
	e.asks()
	defer e.answered()
	if err := something(); err != nil {
		e.fail(err)
		<-e.fenced
	}
}

// Reset ends every pending call with ErrDeviceLost, boots the device anew and
// shakes hands again. If ctx ends before the last call has left, or the device
// does not boot, the device stays lost and Reset may be called again.
func (d *device) Reset(ctx context.Context) error {
	if err := d.restarting.lock(ctx); err != nil {
		return &bridge.WithdrawnError{Cause: err}
	}
	defer d.restarting.unlock()
	if d.closed {
		return errDeviceClosed
	}
	if err := ctx.Err(); err != nil {
		return &bridge.WithdrawnError{Cause: err}
	}
	old := d.cur.Load()
	if bridge.CheckEpoch(ctx, old.Epoch) != nil {
		return nil
	}
	if err := old.end(ctx, bridge.ErrReset); err != nil {
		return err
	}
	for _, c := range old.table.list() {
		d.retire(c)
	}
	if err := d.port.Restart(ctx); err != nil {
		return err
	}
	d.resets.Add(1)
	e, err := newEpoch(ctx, d)
	if err != nil {
		return err
	}
	d.listen() // a doorbell that ended does not end the new epoch
	d.cur.Store(e)
	return nil
}

// Close ends every pending call with ErrClosed, stops the device and releases
// all it held. It is idempotent, and waits until the last call has left.
func (d *device) Close() error {
	_ = d.restarting.lock(background)
	defer d.restarting.unlock()
	if d.closed {
		return d.closeErr
	}
	d.closed = true
	_ = d.cur.Load().end(background, errDeviceClosed)
	d.regions.End()
	d.closeErr = d.port.Close()
	d.serving.Wait()
	d.log.Flush()
	return d.closeErr
}
