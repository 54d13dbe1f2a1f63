package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// kind is a sentinel that also answers errors.Is for standard errors.
type kind struct {
	text string
	is   []error
}

func (k *kind) Error() string { return k.text }

// Is lets errors.Is find the standard errors a sentinel stands for.
func (k *kind) Is(target error) bool {
	for _, e := range k.is {
		if e == target {
			return true
		}
	}
	return false
}

// Timeout reports whether the error is a time-out, as package net does.
func (k *kind) Timeout() bool { return k.Is(os.ErrDeadlineExceeded) }

// Sentinel errors. Compare with errors.Is; each means one thing that failed.
var (
	// ErrClosed: the channel's end or the device was closed.
	ErrClosed error = &kind{"closed", []error{net.ErrClosed, os.ErrClosed}}
	// ErrMoved: the channel's end, or the region, was sent through a channel, and is not here any more.
	ErrMoved error = &kind{"sent away", []error{ErrClosed, net.ErrClosed, os.ErrClosed}}
	// ErrTargetTimeout: the target was not ready in time; nothing was delivered.
	ErrTargetTimeout error = &kind{"target not ready in time", []error{os.ErrDeadlineExceeded, context.DeadlineExceeded}}
	// ErrSizeMismatch: the two ends of a transfer gave different sizes.
	ErrSizeMismatch error = &kind{text: "sizes differ"}
	// ErrKindMismatch: one end is direct, the other indirect.
	ErrKindMismatch error = &kind{text: "one end sends a message, the other a transfer"}
	// ErrTooLarge: over a limit, or longer than the buffer.
	ErrTooLarge error = &kind{text: "too large"}
	// ErrRange: outside device memory.
	ErrRange error = &kind{text: "outside device memory"}
	// ErrProtocol: the device says the host broke the protocol.
	ErrProtocol error = &kind{text: "protocol violation"}
	// ErrDMA: the DMA engine could not reach a page.
	ErrDMA error = &kind{text: "page not reachable by DMA"}
	// ErrAborted: the transfer was aborted.
	ErrAborted error = &kind{text: "transfer aborted"}
	// ErrWithdrawn: the message was taken back before the target accepted it.
	ErrWithdrawn error = &kind{text: "withdrawn"}
	// ErrNotSubscribed: no such target, or the channel is not subscribed.
	ErrNotSubscribed error = &kind{text: "no such target"}
	// ErrBusy: in use by another.
	ErrBusy error = &kind{text: "in use"}
	// ErrNoProgram: no program of that name.
	ErrNoProgram error = &kind{text: "no such program"}
	// ErrABI: built for another ABI version.
	ErrABI error = &kind{text: "built for another ABI"}
	// ErrNoMemory: out of resources of the device, or of memory of the host.
	ErrNoMemory error = &kind{text: "out of resources"}
	// ErrInvalid: an argument makes no sense.
	ErrInvalid error = &kind{text: "invalid argument"}
	// ErrNotSupported: this device or this build cannot.
	ErrNotSupported error = &kind{"not supported", []error{errors.ErrUnsupported}}
	// ErrStopped: the device's process was asked to stop.
	ErrStopped error = &kind{text: "device process stopped"}
	// ErrDeviceLost: the device was reset or died.
	ErrDeviceLost error = &kind{text: "device lost"}
	// ErrFault: the device broke the protocol and is out of use until Reset.
	ErrFault error = &kind{text: "device in fault"}
	// ErrCorrupt: the checksums of a transfer's bytes, at the host and in device memory, differ. It was
	// aborted, and nothing was delivered.
	ErrCorrupt error = &kind{"bytes changed on the way", []error{ErrDMA}}
	// ErrStalled: a transfer did not move on for too long although the device
	// beat. It was aborted, and nothing was delivered.
	ErrStalled error = &kind{text: "transfer stalled"}
	// ErrLinkDown: a link of a fabric is down, or failed meanwhile.
	ErrLinkDown error = &kind{text: "link is down"}
	// ErrScheme: no back end for the address.
	ErrScheme error = &kind{text: "unknown address scheme"}
	// ErrOption: the address has an option that the back end does not know.
	ErrOption error = &kind{text: "unknown option"}
)

// SizeError is an ErrSizeMismatch with the sizes of the two ends, in bytes.
type SizeError struct {
	Host, Device uint64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("sizes differ: host %d bytes, device %d bytes", e.Host, e.Device)
}

// Unwrap returns ErrSizeMismatch.
func (e *SizeError) Unwrap() error { return ErrSizeMismatch }

// TransferError reports where a transfer stopped. It was not delivered, but
// Processed bytes were moved before.
type TransferError struct {
	// Processed and Outstanding are in bytes.
	Processed, Outstanding uint64
	// List and Entry name the gather list and the entry that failed.
	List, Entry uint32
	// Err is the sentinel.
	Err error
}

func (e *TransferError) Error() string {
	return fmt.Sprintf("%v after %d bytes with %d outstanding (list %d, entry %d)",
		e.Err, e.Processed, e.Outstanding, e.List, e.Entry)
}

// Unwrap returns the sentinel.
func (e *TransferError) Unwrap() error { return e.Err }

// WithdrawnError is returned when a context ended before the rendezvous: the
// message or transfer was taken back, so it was not delivered.
type WithdrawnError struct {
	// Cause is the context's error.
	Cause error
}

func (e *WithdrawnError) Error() string { return "withdrawn: " + e.Cause.Error() }

// Unwrap returns ErrWithdrawn and the context's error.
func (e *WithdrawnError) Unwrap() []error { return []error{ErrWithdrawn, e.Cause} }

// Timeout reports whether a deadline was the cause.
func (e *WithdrawnError) Timeout() bool { return errors.Is(e.Cause, context.DeadlineExceeded) }

// ImageError is the error of a Load that the device refused for a reason that it names.
type ImageError struct {
	// Why is the reason, as "needs chanel_read": in the words of the device, at most 39
	// characters. A device of an older release names none.
	Why string
	// Err is what became of the call: ErrInvalid, ErrABI, ErrBusy and others.
	Err error
}

func (e *ImageError) Error() string { return e.Why + ": " + e.Err.Error() }

// Unwrap returns what became of the call.
func (e *ImageError) Unwrap() error { return e.Err }

// CrashError is the ErrClosed of a channel whose device process crashed. Only that
// process ended; everything else on the device continues.
type CrashError struct {
	Process ProcessID
	Program string
	Island  int
	// The reason for the crash, as "divided by zero".
	What string
	// Line is where in the program's source, as "device/checksum.c:24"; empty where
	// that is not known.
	Line string
	Err  error
}

func (e *CrashError) Error() string {
	text := fmt.Sprintf("%v: program %q (process %d, island %d) %s", e.Err, e.Program, e.Process, e.Island, e.What)
	if e.Line != "" {
		text += ", at " + e.Line
	}
	return text
}

// Unwrap returns what became of the call.
func (e *CrashError) Unwrap() error { return e.Err }

// ComputingError is an error for which a device process is to blame that keeps its
// island to itself: it computes, so that nothing else that the island serves makes
// progress. Err is ErrDeviceLost for calls that found the device silent, ErrTargetTimeout
// where only that island is, and ErrBusy for a Close that left its thread behind.
type ComputingError struct {
	// Process is zero if nobody knows, as where the island's thread got no processor.
	Process ProcessID
	Program string
	Island  int
	// For is how long it had computed by then.
	For time.Duration
	Err error
}

func (e *ComputingError) Error() string {
	if e.Process == 0 {
		return fmt.Sprintf("%v: the thread of island %d has done nothing for %v", e.Err, e.Island, e.For.Round(time.Millisecond))
	}
	return fmt.Sprintf("%v: program %q (process %d) has kept island %d to itself for %v",
		e.Err, e.Program, e.Process, e.Island, e.For.Round(time.Millisecond))
}

// Unwrap returns what became of the call.
func (e *ComputingError) Unwrap() error { return e.Err }
