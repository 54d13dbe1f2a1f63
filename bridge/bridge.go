package bridge

import (
	"context"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Target is the id of a device process's end of a channel: 24 bits, and the
// coordinates of its node where that is another one of a fabric (abi.ID). Ids below
// abi.TargetFirst name services that are always there.
type Target uint64

// At returns the id of a target of a node.
func At(node abi.Node, t Target) Target { return Target(abi.MakeID(node, uint32(t))) }

// Node returns the node that the id names; false if it names none, and the target is
// the device's own.
func (t Target) Node() (abi.Node, bool) { return abi.ID(t).Node() }

// String returns "1042", or "2.0.1/1042" for a target of a node.
func (t Target) String() string {
	if id := abi.ID(t); id.Valid() {
		return id.String()
	}
	return strconv.FormatUint(uint64(t), 10)
}

// ProcessID names a running device process. A device gives no id twice, also not in a later
// epoch.
type ProcessID uint64

// Options adjusts how a device is opened. The zero value is valid.
type Options struct {
	// Logger receives the device's log lines and rare events of the back
	// end, in order, on a goroutine of its own: a handler may block, and may
	// call the device. Records that a slow handler leaves no room for are
	// dropped and counted in Stats.LogDropped. Nil discards them.
	Logger *slog.Logger
}

// Device is an open device. All methods are safe for concurrent use.
//
// The caller knows which device, target and operation an error is about, so errors add only facts
// that the caller does not know.
//
// A device that breaks the protocol is latched as faulty: every pending and
// later call returns ErrFault until Reset.
type Device interface {
	// Info describes the device; it does not change between resets.
	Info() Info
	// Stats returns counters since Open. It takes no lock that a message needs.
	Stats() Stats
	// Health returns the device's last heartbeat. ErrDeviceLost if it is
	// overdue.
	Health() (Health, error)

	// Subscribe opens the channel to a target. ErrNotSubscribed if no
	// process holds that target, ErrBusy if it is subscribed already.
	Subscribe(ctx context.Context, t Target) (Channel, error)
	// Start runs a program as a new process. ErrNoProgram if there is none
	// of that name, ErrBusy if one of its targets is held by another
	// process, ErrNoMemory if no context is free.
	Start(ctx context.Context, p Program) (Process, error)
	// Stop asks a process to return and waits until it did; its channels close. ErrInvalid if there
	// is no such process (any more). Once asked, the process returns even if ctx ends first (S37).
	Stop(ctx context.Context, id ProcessID) error
	// Running reports whether a process that Start returned has not returned
	// yet, by itself or because of Stop.
	Running(ctx context.Context, id ProcessID) (bool, error)
	// Load adds the programs of an image (on hosted devices: a shared object) and returns the
	// name of the first. A program loaded before under the same name is replaced: processes
	// that run it continue with the old one. ErrABI if it was built for another ABI, ErrInvalid
	// if it is no image that may run. ErrBusy if a name is that of a program of the firmware,
	// ErrNotSupported if the device cannot load. After an error nothing has changed.
	Load(ctx context.Context, image []byte) (string, error)
	// Programs lists the names Start accepts.
	Programs(ctx context.Context) ([]string, error)
	// Memory describes one of the device's memory types, abi.CLS..abi.EMEM.
	Memory(ctx context.Context, kind int) (Memory, error)

	// Alloc returns a region of size bytes of new memory, zeroed, that starts on a
	// page. ErrInvalid for none, ErrNoMemory past what this host or the device has.
	Alloc(size int) (Region, error)
	// Register makes a region of memory that is there and can be written to.
	// ErrInvalid for no bytes, ErrBusy if a part of it is a region's already,
	// ErrNoMemory for more regions than a device may have, 1,024.
	Register(mem []byte) (Region, error)

	// Reset fences the device (no DMA runs afterwards), ends every pending
	// call with ErrDeviceLost, clears a fault and starts the firmware anew under the next epoch.
	// Channels of the old epoch stay unusable; its processes and loaded programs are removed.
	Reset(ctx context.Context) error
	// Close ends every pending call with ErrClosed, stops the device and releases all its
	// resources. It is idempotent. ErrBusy, in a ComputingError, if a process that computes still
	// runs on a thread of the device (S34).
	Close() error
}

// Sharer is a Device whose processes reach memory of this host in place.
type Sharer interface {
	// Share makes a region of all of a file that keeps its size (a sealed memfd), and returns the
	// address by which a process of the device finds it (nfc_host_at). The descriptor may be closed
	// at once. Close the region when no process uses it any more. ErrInvalid for another file,
	// ErrNotSupported where the device is not in this machine, and the errors of Register.
	Share(file int) (Region, uint64, error)
}

// Importer is a Device that reaches other devices' memory.
type Importer interface {
	// Import makes a region of all of a dma-buf, which stays there until the region is closed; the
	// descriptor may be closed at once. Bytes of a buffer that processes cannot map are only
	// addresses: transfers accept them, and a program must not access them. ErrInvalid if it is no
	// dma-buf, ErrNotSupported where the host cannot, and the errors of Register.
	Import(fd int) (Region, error)
}

// Channel is the host's end of one channel. All methods are safe for
// concurrent use; senders are served in order of arrival, and a second
// concurrent receiver gets ErrBusy.
//
// Every error of a send means "not delivered": it is safe to retry. When the
// context ends first, the host withdraws the message; if the target took it
// meanwhile the call returns nil. The only exception is a direct message whose
// device is lost: ErrDeviceLost leaves its outcome unknown.
//
// A buffer given to a call belongs to it until the call returns.
type Channel interface {
	// Target returns the id of the far end.
	Target() Target

	// Send gives one message of at most abi.PayloadSize bytes and returns
	// nil once the target took it.
	Send(ctx context.Context, msg []byte) error
	// Receive takes one message into buf and returns its length. With
	// ErrTooLarge the message is longer than buf, with ErrKindMismatch a
	// transfer is offered: it stays offered.
	Receive(ctx context.Context, buf []byte) (int, error)
	// ReceiveFunc is an extended rendezvous: fn works on the message in
	// place, and the device's process is released when fn returns nil. With
	// an error from fn the message stays offered, and the error is returned.
	ReceiveFunc(ctx context.Context, fn func(msg []byte) error) error

	// SendInd gives len(data) bytes and returns nil once the target holds
	// them all.
	SendInd(ctx context.Context, data []byte) error
	// ReceiveInd takes a transfer of exactly len(data) bytes. With
	// ErrSizeMismatch the device offers another size, with ErrKindMismatch a
	// message: it stays offered.
	ReceiveInd(ctx context.Context, data []byte) error
	// ReceiveIndFunc is ReceiveInd as an extended rendezvous, into memory that is found late:
	// place is called once a transfer of size bytes is offered, and returns size bytes for it.
	// With an error from place it stays offered, and the error is returned. When the bytes have
	// arrived fn works on them, and nil from fn commits the transfer. An error from fn aborts
	// it (the device's process sees the abort) and is returned: the way to refuse an offer.
	ReceiveIndFunc(ctx context.Context, size uint64, place func() ([]byte, error), fn func(data []byte) error) error

	// Next waits for the device's next offer and returns it without taking it.
	Next(ctx context.Context) (Offer, error)
	// TrySend gives msg only if the target is waiting for it now. waiter
	// is what Arm woke: the call uses its place in the queue; nil for none.
	TrySend(msg []byte, waiter chan<- struct{}) (bool, error)
	// TryReceive takes a message only if one is offered now.
	TryReceive(buf []byte) (n int, ok bool, err error)
	// TrySendInd gives data only if the target waits for it now. A transfer that has begun runs to
	// its end: from then on the call is SendInd. For waiter see TrySend.
	TrySendInd(ctx context.Context, data []byte, waiter chan<- struct{}) (bool, error)
	// TryReceiveInd takes a transfer only if one is offered now. A transfer that has begun runs to
	// its end: from then on the call is ReceiveInd.
	TryReceiveInd(ctx context.Context, data []byte) (bool, error)
	// TryNext returns what the device offers now without taking it; false if
	// nothing is offered.
	TryNext() (Offer, bool, error)
	// Arm asks for one token on wake, without blocking, when the device may be ready for the
	// given half. abi.H2D is ready when the target waits to read, abi.D2H when it has an offer.
	// Also on close and fault. A token is a hint: a Try call decides. wake needs room for one,
	// and names the waiter: a second Arm of the same changes nothing.
	//
	// Any number may be armed on a half. They are queued in order of arrival, on abi.H2D among
	// the senders: a sender that arrives later waits. So a caller that was woken must either
	// try or Disarm, and a caller that no longer waits must Disarm.
	Arm(half abi.Direction, wake chan<- struct{}) error
	// Disarm takes the Arm of wake back.
	Disarm(half abi.Direction, wake chan<- struct{})

	// CloseSend and CloseReceive close one half; Close closes both. They are
	// idempotent. Pending calls of that half end with ErrClosed, transfers
	// after the device is quiet, and the device's process sees the close.
	CloseSend() error
	CloseReceive() error
	Close() error

	// Stats returns counters since Subscribe.
	Stats() ChannelStats
	// Delivered returns the counter of the messages that a half delivers, or of its transfers: the
	// same value as in Stats, for callers that read it at every call.
	Delivered(half abi.Direction, transfers bool) *atomic.Uint64
	// Halves describes the current state of both halves: the waiting calls and
	// the offer. It takes no lock that a message needs.
	Halves() Both[Half]
}

// Region is memory that was made known to a device once: transfers whose buffer is inside, all of
// it, need no pinning or mapping of their own. The device finds the region by its address. Regions
// stay over Reset and end with Close of the device.
type Region interface {
	// Bytes returns the memory; nil once the region is released.
	Bytes() []byte
	// Close releases the region: memory of Alloc is unmapped, that of Register belongs to the
	// caller alone again. ErrBusy while a transfer or a window uses it. It is idempotent.
	Close() error
}

// Program describes what Start runs.
type Program struct {
	// Name is one of Programs, at most 23 bytes.
	Name string
	// First is the target of the program's port 0; port i gets First+i. Zero
	// lets the device choose.
	First Target
	// Targets is the number of ports, at least 1.
	Targets int
	// Argument is a word the program may read.
	Argument uint64
}

// Process is a started program.
type Process struct {
	ID    ProcessID
	First Target
	// Targets is the number of ports.
	Targets int
	// Epoch is the one that it runs in, as in Info. Package nfcomms sets it.
	Epoch uint32
}

// Offer describes the message or transfer that the device offers on a channel.
type Offer struct {
	// Indirect is true for a transfer, false for a message.
	Indirect bool
	// Size is in bytes.
	Size uint64
}

// Info describes a device.
type Info struct {
	// Address is what Open was given.
	Address string
	// Driver names the back end: "sim", "shm", "vfio", "dev".
	Driver string
	// Node is its place in a fabric; zero also where there is none.
	Node abi.Node
	// DriverVersion is that of the kernel module; empty without one.
	DriverVersion string
	// Major and Minor are the device's ABI version.
	Major, Minor int
	// Epoch counts resets.
	Epoch uint32
	// Channels bounds target ids.
	Channels int
	// Mailboxes, Islands, Slots and Contexts give the device's shape.
	Mailboxes, Islands, Slots, Contexts int
	// ReadManagers and WriteManagers serve the mailboxes.
	ReadManagers, WriteManagers int
	// Window is the number of gather lists in flight per transfer.
	Window int
	// Runs is true if an entry of a gather list may stand for many pages in a row:
	// then a list is up to 1.5 GiB, else 24 KiB.
	Runs bool
	// MaxTransfer is in bytes.
	MaxTransfer uint64
	// Beat is the heartbeat interval.
	Beat time.Duration
	// CanLoad is true if Load works.
	CanLoad bool
	// Board is the card that the device is; nil where it is none, as of "sim", "shm" and "vfio".
	// It must not be changed.
	Board *Board
}

// Memory describes a device memory type.
type Memory struct {
	// Base is the 40-bit device address of the first byte.
	Base uint64
	// Size and Free are in bytes.
	Size, Free uint64
}

// Health is the device's last heartbeat.
type Health struct {
	// Beat counts up by one each interval.
	Beat uint64
	// Age is the time since the beat was written, by the host's clock; zero
	// where the clocks are not comparable.
	Age time.Duration
	// Diagnostic holds the health of the device's parts.
	Diagnostic abi.Diagnostic
	// Processes is the number of running device processes.
	Processes int
	// Messages, Bytes and Dropped count what the device took, moved and refused.
	Messages, Bytes, Dropped uint64
	// Queued is the number of requests waiting for a target.
	Queued uint64
}
