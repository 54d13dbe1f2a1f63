package nfcomms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fault"
)

// Types of the bridge contract that applications see.
type (
	// Target is the id of a device process's end of a channel.
	Target = bridge.Target
	// ProcessID names a running device process.
	ProcessID = bridge.ProcessID
	// Program describes what Start runs.
	Program = bridge.Program
	// Process is a started program.
	Process = bridge.Process
	// Info describes a device.
	Info = bridge.Info
	// Stats counts what a device did since Open.
	Stats = bridge.Stats
	// ChannelStats counts what a channel did since Subscribe.
	ChannelStats = bridge.ChannelStats
	// PathStats counts one direction of one path.
	PathStats = bridge.PathStats
	// Profile describes the calls of all channels of a device.
	Profile = bridge.Profile
	// PathProfile describes one direction of one path.
	PathProfile = bridge.PathProfile
	// MailboxStats describes the rings of a mailbox.
	MailboxStats = bridge.MailboxStats
	// Health is the device's last heartbeat.
	Health = bridge.Health
	// Offer is what the device holds ready on a channel.
	Offer = bridge.Offer
)

// Loopback is a target that every device has. It sends every message and every transfer back.
const Loopback Target = abi.TargetLoopback

// MessageSize is the most bytes a message may have; a transfer carries more.
const MessageSize = abi.PayloadSize

// Device is an open device. All methods are safe for concurrent use.
type Device struct {
	dev     bridge.Device
	address string
	epochs  epochs
	// tracing has the tracers; nil: nobody traces. It is written under clock.mu.
	tracing atomic.Pointer[tracing]
	clock   clock
	// shared: others have the same device of the back end open, see node.
	shared bool
	// idle holds a token while nobody resets or closes the device.
	idle chan struct{}
	// late are the calls that the device has not answered yet, of which the contexts have ended.
	late leftovers
}

// Open opens the device at an address, "scheme:path?option=value&…":
//
//	sim:                    the device firmware in this process
//	sim:?managers=4         with four mailbox managers
//	dev:0                   /dev/nfcomms0, a PCIe device behind the kernel module
//	dev:/dev/nfcomms1       a device node by its path
//	env:                    the device that this container was given; env:NAME is that of a name
//
// admin.Devices lists what there is. Options of "sim:", with their defaults; package
// internal/sim has their ranges:
//
//	managers=8        mailboxes, each with a read and a write manager
//	islands=1         threads that run managers and processes: with one all processes take turns
//	microengines=8    per island
//	contexts=8        processes per microengine
//	channels=65536    target ids are below this
//	slots=1024        per mailbox ring, a power of two
//	runs=1            entries of gather lists are runs of pages, 0: single pages
//	eager=4           page entries of a transfer that travels as one slot, 0: none does; 0..4
//	window=512        gather lists in flight per transfer, a power of two
//	engines=0         DMA threads beside the islands
//	busy=0            one DMA piece of so many is refused for now; 0: none
//	cls=64KiB         cluster local scratch
//	ctm=256KiB        cluster target memory
//	imem=4MiB         internal memory
//	emem=1GiB         external memory
//	stack=64KiB       of a device process
//	mhz=0             clock by which nfc_at takes the cycles of an access to its type of memory; 0: no time
//	buffer=           device memory that a process may have for each of its targets; empty: all
//	beat=100ms        heartbeat interval
//	target-timeout=0  how long an offer waits for its target; 0: for ever
//	stall-timeout=10s how long a transfer may stand still while the device beats
//	spin=25us         how long an idle island spins before it sleeps
//	lone=1            there are programs that may keep an island, as lone.spin; 0: none
//	torus=            nodes of a fabric in x, y and z, as 4x4x1: the device is 0.0.0
//	errors=0          of a torus: the part of words that links flip, lose, double and delay
//
// Options of "dev:" reset the device and give its next epoch a shape, which needs
// CAP_SYS_ADMIN and ends what others do with the device:
//
//	managers, islands, channels, slots, window, emem, target-timeout
//
// One does not: waits of a "dev:" poll for so long before they sleep,
//
//	busy-poll=0       up to 10ms
//
// The context bounds Open alone. Errors: ErrScheme, ErrOption, ErrNotSupported
// and what the back end finds wrong.
func Open(ctx context.Context, address string, options ...Option) (*Device, error) {
	o, err := optionsOf(ctx, opOpen, options)
	if err != nil {
		return nil, wrap(opOpen, address, 0, err)
	}
	open := func() (bridge.Device, error) { return bridge.Open(ctx, address, &bridge.Options{Logger: o.logger}) }
	dev, err := behind(ctx, new(leftovers), open, func(dev bridge.Device) { _ = dev.Close() })
	if err != nil {
		return nil, wrap(opOpen, address, 0, err)
	}
	return newDevice(dev, address), nil
}

// newDevice returns the device over that of a back end.
func newDevice(dev bridge.Device, address string) *Device {
	d := &Device{dev: dev, address: address, idle: make(chan struct{}, 1)}
	d.clock.asking = make(chan struct{}, 1)
	d.pass()
	d.epochs.present, d.epochs.open = newEpoch(dev.Info().Epoch), make(map[*Channel]struct{})
	return d
}

// fail gives an error of this device its context.
func (d *Device) fail(op string, t Target, err error) error { return wrap(op, d.address, t, err) }

// failNamed is fail of a call that has a name in place of a target.
func (d *Device) failNamed(op, name string, err error) error { return d.failAt(op, 0, name, err) }

// failAt is fail of a channel or listener that may have a name.
func (d *Device) failAt(op string, t Target, name string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Device: d.address, Target: t, Name: name, Err: err}
}

// Info describes the device; it does not change between resets.
func (d *Device) Info() Info { return d.dev.Info() }

// Stats returns counters since Open. It slows no message down.
func (d *Device) Stats() Stats { return d.dev.Stats() }

// Health returns the device's last heartbeat, ErrDeviceLost if it is overdue.
func (d *Device) Health() (Health, error) {
	h, err := d.dev.Health()
	return h, d.fail(opHealth, 0, err)
}

// Subscribe opens the channel to a target. ErrNotSubscribed if no device
// process holds that target, ErrBusy if it is subscribed already.
func (d *Device) Subscribe(ctx context.Context, t Target) (*Channel, error) {
	return d.subscribe(ctx, d.now(), t)
}

// subscribe is Subscribe in the given epoch, and in no other.
func (d *Device) subscribe(ctx context.Context, e *epoch, t Target) (*Channel, error) {
	if t == abi.TargetTime && ctx.Err() == nil { // a tracer may have it for a moment
		if err := d.clock.enter(ctx); err != nil {
			return nil, d.fail(opSubscribe, t, err)
		}
		defer d.clock.leave()
	}
	do := func() (bridge.Channel, error) { return d.dev.Subscribe(e.in(ctx), t) }
	ch, err := behind(ctx, &d.late, do, closeChannel)
	if err != nil {
		return nil, d.fail(opSubscribe, t, err)
	}
	c := &Channel{dev: d, epoch: e.number, ch: ch}
	d.entered(c)
	return c, nil
}

// closeChannel takes back a channel that nobody has.
func closeChannel(ch bridge.Channel) { _ = ch.Close() }

// Start runs a program as a new device process. ErrNoProgram if there is none
// of that name, ErrBusy if another process holds one of its targets,
// ErrNoMemory if the device has no room for it.
func (d *Device) Start(ctx context.Context, p Program) (Process, error) {
	return d.start(ctx, d.now(), p)
}

// start is Start in the given epoch, and in no other.
func (d *Device) start(ctx context.Context, e *epoch, p Program) (Process, error) {
	do := func() (Process, error) { return d.dev.Start(e.in(ctx), p) }
	proc, err := behind(ctx, &d.late, do, func(p Process) { _ = d.dev.Stop(e.in(context.Background()), p.ID) })
	if err == nil {
		proc.Epoch = e.number
	}
	return proc, d.fail(opStart, p.First, err)
}

// Stop asks a process to return and waits until it did; its channels close.
// ErrInvalid if there is no such process, or no more: a reset ends all of them, and a later
// process has another id.
func (d *Device) Stop(ctx context.Context, id ProcessID) error {
	do := func() (any, error) { return nil, d.dev.Stop(ctx, id) } // the device remembers it
	_, err := behind(ctx, &d.late, do, nil)
	return d.fail(opStop, 0, err)
}

// Load adds the programs of an image, on hosted devices a shared object, and
// returns the name of the first. A program loaded before under the same name is
// replaced: processes that run it keep the old one. ErrABI if it was built
// for another ABI, ErrBusy if a name is that of a program of the firmware,
// ErrNotSupported if the device cannot load; then nothing has changed.
func (d *Device) Load(ctx context.Context, image []byte) (string, error) {
	return d.load(ctx, d.now(), image)
}

// imageKept is the most bytes of an image that a device takes.
const imageKept = 64 << 20

// load is Load in the given epoch, and in no other.
func (d *Device) load(ctx context.Context, e *epoch, image []byte) (string, error) {
	if ctx.Done() != nil && len(image) <= imageKept { // the image stays the caller's
		kept := make([]byte, len(image))
		if n, err := fault.Copy(kept, image); err != nil {
			return "", d.fail(opLoad, 0, &TransferError{Processed: uint64(n), Outstanding: uint64(len(image) - n), Err: ErrDMA})
		}
		image = kept
	}
	do := func() (string, error) { return d.dev.Load(e.in(ctx), image) }
	name, err := behind(ctx, &d.late, do, nil)
	return name, d.fail(opLoad, 0, err)
}

// imageMost bounds what LoadFile reads, in bytes: 1 GiB, which is what a device
// has for everything.
const imageMost = 1 << 30

// LoadFile is Load of a file's contents. ErrTooLarge for one of more than
// 1 GiB, ErrInvalid for what is no regular file.
func (d *Device) LoadFile(ctx context.Context, path string) (string, error) {
	image, err := readImage(path, imageMost)
	if err != nil {
		return "", d.fail(opLoad, 0, err)
	}
	return d.Load(ctx, image)
}

// readImage reads a file of at most so many bytes.
func readImage(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file: %w", path, ErrInvalid)
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes, at most %d: %w", path, info.Size(), most, ErrTooLarge)
	}
	image := make([]byte, info.Size())
	_, err = io.ReadFull(f, image)
	return image, err
}

// programs is admin.Programs.
func (d *Device) programs(ctx context.Context) ([]string, error) {
	in := d.now().in(ctx) // some back ends ask name by name
	do := func() ([]string, error) { return d.dev.Programs(in) }
	names, err := behind(ctx, &d.late, do, nil)
	return names, d.fail(opPrograms, 0, err)
}

// running is admin.Running.
func (d *Device) running(ctx context.Context, id ProcessID) (bool, error) {
	do := func() (bool, error) { return d.dev.Running(ctx, id) }
	running, err := behind(ctx, &d.late, do, nil)
	return running, d.fail(opRunning, 0, err)
}

// memory is admin.MemoryOf.
func (d *Device) memory(ctx context.Context, kind int) (bridge.Memory, error) {
	do := func() (bridge.Memory, error) { return d.dev.Memory(ctx, kind) }
	m, err := behind(ctx, &d.late, do, nil)
	return m, d.fail(opMemory, 0, err)
}

// Reset stops all DMA, ends every pending call with ErrDeviceLost, clears a
// fault and starts the firmware anew under the next epoch. Channels from before
// stay unusable, processes have ended. As Close, it waits for functions that work
// in an extended rendezvous. A context that has ended resets nothing. When it ends
// while such a function is still at work the calls have ended and the device stays
// lost, or with dev: has begun its next epoch; Reset may be called again.
func (d *Device) Reset(ctx context.Context) error {
	if err := d.take(ctx); err != nil {
		return d.fail(opReset, 0, err)
	}
	do := func() (any, error) {
		defer d.pass()
		return nil, d.reset(ctx, d.now())
	}
	_, err := behind(ctx, new(leftovers), do, nil) // others wait for the token
	return d.fail(opReset, 0, err)
}

// take waits until nobody else resets or closes the device, and takes the token.
func (d *Device) take(ctx context.Context) error {
	if ctx.Err() == nil {
		select {
		case <-d.idle:
			return nil
		case <-ctx.Done():
		}
	}
	return &WithdrawnError{Cause: ctx.Err()}
}

// pass lets the next reset or close begin.
func (d *Device) pass() { d.idle <- struct{}{} }

// reset is Reset of the given epoch, if that is not over yet. The caller must have taken the
// token.
func (d *Device) reset(ctx context.Context, e *epoch) error {
	e.end(bridge.ErrReset)
	defer d.begin()
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	d.resetting(cancel)
	err := withdrawn(within, d.dev.Reset(e.in(within)))
	switch end := ctx.Err(); {
	case !errors.Is(err, ErrWithdrawn) || end != nil && errors.Is(err, end):
	case end != nil: // a Close ended it before, with another error
		err = &WithdrawnError{Cause: end}
	case errors.Is(err, context.Canceled):
		err = errDeviceClosed
	}
	return err
}

// Close ends every pending call with ErrClosed, stops the device and releases
// all it held. It waits for functions that work in an extended rendezvous, and one
// second for a process of "sim:" that computes. It is idempotent.
func (d *Device) Close() error {
	if d.shared {
		d.closeAll()
	}
	d.closing() // before a reset under way has ended, as that may wait for calls
	<-d.idle
	defer d.pass()
	err := d.dev.Close()
	_ = d.late.wait(context.Background()) // they end with the device
	return d.fail(opClose, 0, err)
}
