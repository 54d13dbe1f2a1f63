package nfcomms

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
)

// Operations, as OpError.Op has them.
const (
	opOpen           = "open"
	opHealth         = "health"
	opSubscribe      = "subscribe"
	opListen         = "listen"
	opDial           = "dial"
	opAccept         = "accept"
	opStart          = "start"
	opStop           = "stop"
	opLoad           = "load"
	opPrograms       = "programs"
	opMemory         = "memory"
	opRunning        = "running"
	opAlloc          = "alloc"
	opRegister       = "register"
	opImport         = "import"
	opCloseRegion    = "close region"
	opReset          = "reset"
	opClose          = "close"
	opCloseSend      = "close send"
	opCloseReceive   = "close receive"
	opSend           = "send"
	opReceive        = "receive"
	opCall           = "call"
	opSendInd        = "send transfer"
	opReceiveInd     = "receive transfer"
	opSendStriped    = "send striped"
	opReceiveStriped = "receive striped"
	opSendChannel    = "send channel"
	opReceiveChannel = "receive channel"
	opSendRegion     = "send region"
	opReceiveRegion  = "receive region"
	opNext           = "next"
	opVerify         = "verify"
	opWait           = "wait"
	opChan           = "typed channel"
	opSelect         = "select"
	opTrace          = "trace"
	opSupervise      = "supervise"
	opFabricState    = "state of the fabric of"
	opRoute          = "route"
	opCutLink        = "cut link"
	opKillNode       = "kill node"
	opSilenceNode    = "silence node"
	opTestLink       = "test link"
	opPut            = "put"
	opGet            = "get"
	opWindow         = "make window"
)

// The errors of the back ends; package bridge documents each. Compare
// with errors.Is.
var (
	ErrClosed        = bridge.ErrClosed
	ErrMoved         = bridge.ErrMoved
	ErrTargetTimeout = bridge.ErrTargetTimeout
	ErrSizeMismatch  = bridge.ErrSizeMismatch
	ErrKindMismatch  = bridge.ErrKindMismatch
	ErrTooLarge      = bridge.ErrTooLarge
	ErrRange         = bridge.ErrRange
	ErrProtocol      = bridge.ErrProtocol
	ErrDMA           = bridge.ErrDMA
	ErrAborted       = bridge.ErrAborted
	ErrWithdrawn     = bridge.ErrWithdrawn
	ErrNotSubscribed = bridge.ErrNotSubscribed
	ErrBusy          = bridge.ErrBusy
	ErrNoProgram     = bridge.ErrNoProgram
	ErrABI           = bridge.ErrABI
	ErrNoMemory      = bridge.ErrNoMemory
	ErrInvalid       = bridge.ErrInvalid
	ErrNotSupported  = bridge.ErrNotSupported
	ErrStopped       = bridge.ErrStopped
	ErrDeviceLost    = bridge.ErrDeviceLost
	ErrFault         = bridge.ErrFault
	ErrStalled       = bridge.ErrStalled
	ErrCorrupt       = bridge.ErrCorrupt
	ErrUnanswered    = bridge.ErrUnanswered
	ErrScheme        = bridge.ErrScheme
	ErrOption        = bridge.ErrOption
	ErrLinkDown      = bridge.ErrLinkDown
)

// Errors found before anything reaches the device.
var (
	// ErrSize: a size is negative, larger than the object it belongs to, or cuts an element.
	ErrSize = errors.New("size out of range")
	// ErrPointers: the type holds pointers, which mean nothing to a device.
	ErrPointers = errors.New("type holds pointers")
)

// Errors with details; errors.As finds them.
type (
	// SizeError is an ErrSizeMismatch with the sizes of both ends.
	SizeError = bridge.SizeError
	// ImageError is the error of a Load, with the reason or the symbol that the device names.
	ImageError = bridge.ImageError
	// CrashError is an ErrClosed that names the device process which crashed, and where.
	CrashError = bridge.CrashError
	// ComputingError names the device process that keeps its island from answering.
	ComputingError = bridge.ComputingError
	// TransferError reports where a transfer stopped.
	TransferError = bridge.TransferError
	// WithdrawnError is an ErrWithdrawn with the context's error.
	WithdrawnError = bridge.WithdrawnError
	// UnansweredError is an ErrUnanswered with the context's error, or why the process did not answer.
	UnansweredError = bridge.UnansweredError
)

// unlessEnded returns err, or the error of a context that has ended: that wins over arguments that
// make no sense. It serves calls that have done nothing yet.
func unlessEnded(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &WithdrawnError{Cause: ctx.Err()}
	}
	return err
}

// OpError is what every failing call of this package returns: what was tried,
// where, and why it failed.
type OpError struct {
	// Op is the operation in words: "send", "receive transfer", "open".
	Op string
	// Device is the address given to Open; empty where no one device failed.
	Device string
	// Target is the far end; 0 where no channel took part.
	Target Target
	// Name is the name of the listener, of channels and calls that have one.
	Name string
	// Err is the reason.
	Err error
}

// Error returns one line: "send sim: target 17: closed". Several reasons are separated by "; ". A name
// stands in place of the target's number: `send sim: "thumbnails": closed`.
func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Device != "" {
		b.WriteString(" " + e.Device)
	}
	switch {
	case e.Name != "":
		fmt.Fprintf(&b, " %q", e.Name)
	case e.Target != 0:
		fmt.Fprintf(&b, " target %v", e.Target)
	}
	return strings.TrimSuffix(b.String(), ":") + ": " + strings.ReplaceAll(e.Err.Error(), "\n", "; ")
}

// Unwrap returns the reason.
func (e *OpError) Unwrap() error { return e.Err }

// Timeout reports whether time ran out, as package net does.
func (e *OpError) Timeout() bool {
	var t interface{ Timeout() bool }
	if errors.As(e.Err, &t) {
		return t.Timeout()
	}
	return errors.Is(e.Err, os.ErrDeadlineExceeded) || errors.Is(e.Err, context.DeadlineExceeded)
}

// wrap is the one place where an error gets its context; nil stays nil.
func wrap(op, device string, t Target, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Device: device, Target: t, Err: err}
}

// join makes one error out of those of one call, some of which may be nil: nil, the only one, or
// one that wraps all.
func join(op, device string, errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return wrap(op, device, 0, errors.Join(errs...))
}

// TypeError is an ErrPointers that names the first part of a type that is, or
// hides, a pointer.
type TypeError struct {
	// Type is what was given.
	Type reflect.Type
	// Field is the path of the part: "Order.Customer.Name". It is the type's
	// own name if the type as a whole is refused.
	Field string
	// Kind is what stands there.
	Kind reflect.Kind
	// Instead is what to use in its place, as a phrase: "use an array of bytes,
	// such as [32]byte".
	Instead string
}

// Error returns "Order.Customer.Name is a string: type holds pointers: use an
// array of bytes, such as [32]byte".
func (e *TypeError) Error() string {
	if e.Type == nil {
		return "nil has no type: " + ErrPointers.Error()
	}
	return fmt.Sprintf("%s is %s: %v: %s", e.part(), article(e.Kind), ErrPointers, e.Instead)
}

// part names the part in a sentence.
func (e *TypeError) part() string {
	switch k := e.Type.Kind(); {
	case k == reflect.Slice && e.Field == nameOf(e.Type.Elem()):
		return "an element of " + e.Type.String()
	case k == reflect.Pointer && e.Field == nameOf(e.Type.Elem()):
		return "what " + e.Type.String() + " points to"
	default:
		return e.Field
	}
}

// Unwrap returns ErrPointers.
func (e *TypeError) Unwrap() error { return ErrPointers }

// article returns a kind with the article it takes in a sentence.
func article(k reflect.Kind) string {
	switch k {
	case reflect.Interface:
		return "an interface"
	case reflect.Pointer, reflect.UnsafePointer:
		return "a pointer"
	case reflect.Chan:
		return "a Go channel"
	default:
		return "a " + k.String()
	}
}

// StripeError reports which stripe of a striped transfer failed first.
type StripeError struct {
	// Index is the stripe's number and its channel's place in the call.
	Index int
	// Target is the far end of that channel.
	Target Target
	// Offset and Size are those of the part of the buffer that belongs to it, in bytes.
	Offset, Size int
	// Delivered says of each stripe whether it was delivered.
	Delivered []bool
	// Err is why it failed.
	Err error
}

func (e *StripeError) Error() string {
	delivered := 0
	for _, d := range e.Delivered {
		if d {
			delivered++
		}
	}
	return fmt.Sprintf("stripe %d (bytes %d to %d, target %v), %d of %d delivered: %v", e.Index,
		e.Offset, e.Offset+e.Size, e.Target, delivered, len(e.Delivered), e.Err)
}

// Unwrap returns the reason.
func (e *StripeError) Unwrap() error { return e.Err }
