package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"google.golang.org/grpc/codes"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Domain is the domain of every ErrorInfo.
const Domain = "nfcomms.dev"

// Errors of the control plane, beside those of package nfcomms. Compare with
// errors.Is, on either side of the wire.
var (
	// ErrNoDevice: the server knows no device of that name.
	ErrNoDevice = errors.New("no such device")
	// ErrNoProcess: the device runs no process of that number.
	ErrNoProcess = errors.New("no such process")
	// ErrNotOpen: the device could not be opened, or not yet.
	ErrNotOpen = errors.New("device not open")
	// ErrNoFabric: the device is no node of a fabric.
	ErrNoFabric = errors.New("device is no node of a fabric")
	// ErrDraining: the device takes no new work.
	ErrDraining = errors.New("device is draining")
	// ErrNotOwned: the channel belongs to the application.
	ErrNotOwned = errors.New("channel belongs to the application")
	// ErrPageToken: the token is not from a list of that parent.
	ErrPageToken = errors.New("bad page token")
	// ErrResumeToken: the token is not from a watch of that parent.
	ErrResumeToken = errors.New("bad resume token")
	// ErrResumeExpired: the token is of another server session, or too old.
	// Start anew, without a token.
	ErrResumeExpired = errors.New("resume token expired")
	// ErrSlowWatcher: the client read too slowly. Resume the watch.
	ErrSlowWatcher = errors.New("watcher too slow")
	// ErrShutdown: the server shuts down. Resume elsewhere, or later.
	ErrShutdown = errors.New("server is shutting down")
	// ErrUnavailable: there is no connection to the server.
	ErrUnavailable = errors.New("server not reachable")
)

// meaning is what an error is on the wire.
type meaning struct {
	reason string
	err    error
	code   codes.Code
}

// meanings are the errors that no device status stands for.
var meanings = []meaning{
	{"NO_DEVICE", ErrNoDevice, codes.NotFound},
	{"NO_PROCESS", ErrNoProcess, codes.NotFound},
	{"NOT_OPEN", ErrNotOpen, codes.Unavailable},
	{"DRAINING", ErrDraining, codes.FailedPrecondition},
	{"NOT_OWNED", ErrNotOwned, codes.FailedPrecondition},
	{"PAGE_TOKEN", ErrPageToken, codes.InvalidArgument},
	{"RESUME_TOKEN", ErrResumeToken, codes.InvalidArgument},
	{"RESUME_EXPIRED", ErrResumeExpired, codes.OutOfRange},
	{"SLOW_WATCHER", ErrSlowWatcher, codes.ResourceExhausted},
	{"SHUTDOWN", ErrShutdown, codes.Unavailable},
	{"SCHEME", nfcomms.ErrScheme, codes.InvalidArgument},
	{"OPTION", nfcomms.ErrOption, codes.InvalidArgument},
	{"CORRUPT", nfcomms.ErrCorrupt, codes.DataLoss},
	{"MOVED", nfcomms.ErrMoved, codes.FailedPrecondition},
	{"UNANSWERED", nfcomms.ErrUnanswered, codes.Aborted},
	{"SIZE", nfcomms.ErrSize, codes.InvalidArgument},
	{"NO_FABRIC", ErrNoFabric, codes.FailedPrecondition},
	{"LINK_DOWN", nfcomms.ErrLinkDown, codes.FailedPrecondition},
	{"POINTERS", nfcomms.ErrPointers, codes.InvalidArgument},
}

// standards are the errors of package os that a back end over device nodes
// returns. They count where nothing says it better.
var standards = []meaning{
	{"PERMISSION", fs.ErrPermission, codes.PermissionDenied},
	{"NOT_EXIST", fs.ErrNotExist, codes.NotFound},
}

// sentinels finds a sentinel by its reason.
var sentinels = func() map[string]error {
	m := make(map[string]error)
	for _, row := range append(standards, meanings...) {
		m[row.reason] = row.err
	}
	for s := abi.OK + 1; s < abi.StatusCount; s++ {
		c, _ := bridge.CodeOf(s)
		m[c.Reason] = c.Err
	}
	return m
}()

// meaningOf returns what an error is on the wire. An error without a sentinel
// has no reason.
func meaningOf(err error) meaning {
	for _, row := range meanings {
		if errors.Is(err, row.err) {
			return row
		}
	}
	if s, ok := bridge.StatusOf(err); ok {
		c, _ := bridge.CodeOf(s)
		return meaning{c.Reason, c.Err, codes.Code(c.GRPC)}
	}
	for _, row := range standards {
		if errors.Is(err, row.err) {
			return row
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return meaning{"", context.Canceled, codes.Canceled}
	case errors.Is(err, context.DeadlineExceeded):
		return meaning{"", context.DeadlineExceeded, codes.DeadlineExceeded}
	}
	return meaning{"", err, codes.Unknown}
}

// Reason returns the reason that stands for an error on the wire and in metrics,
// "SIZE_MISMATCH" for nfcomms.ErrSizeMismatch; "" if it has none.
func Reason(err error) string { return meaningOf(err).reason }

// FieldError names the field of a request that makes no sense.
type FieldError struct {
	// Field is the path of the field: "header.size_bytes".
	Field string
	// Err is what is wrong with it.
	Err error
}

// Error returns "page_size: -1 is negative: invalid argument".
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

// invalid is an ErrInvalid about a field.
func invalid(field, format string, a ...any) error {
	return &FieldError{Field: field, Err: fmt.Errorf("%s: %w", fmt.Sprintf(format, a...), nfcomms.ErrInvalid)}
}
