package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitDenied      = 4
	exitUnreachable = 5
	exitTimeout     = 6
	exitRefused     = 7
	exitUnhealthy   = 8
	exitDevice      = 9
	exitInterrupted = 130
	exitPipe        = 141
)

// exitRow is one line of the table of exit codes.
type exitRow struct {
	code          int
	name, meaning string
}

// exitTable is the one list of exit codes: the help and the documentation print it.
var exitTable = []exitRow{
	{exitOK, "ok", "done"},
	{exitFailed, "failed", "it failed in a way that no other code names"},
	{exitUsage, "usage", "bad input: flags, arguments, or a message that is too long; nothing was done"},
	{exitNotFound, "not-found", "no such device, channel, program or process"},
	{exitDenied, "denied", "the role is too low, the server refuses the certificate, or the socket or the device node may not be opened"},
	{exitUnreachable, "unreachable", "no server answers at the address, or not in time to say what became of a message"},
	{exitTimeout, "timeout", "the time of --timeout, or the target's own, ran out"},
	{exitRefused, "refused", "not possible now, or not with this device: busy, draining, closed, not supported"},
	{exitUnhealthy, "unhealthy", "health, doctor, selftest or drain did its work and found that not all is well; or some servers of --all are not"},
	{exitDevice, "device", "the device is lost, stalled, in fault or could not be opened; nfctl reset may bring it back"},
	{exitInterrupted, "interrupted", "SIGINT or SIGTERM ended it"},
	{exitPipe, "pipe", "nobody reads the output any more"},
}

// usageError is a fault of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// errUnhealthy ends a command that printed what is wrong.
var errUnhealthy = errors.New("not all is well")

// errUnanswered: the server took a message call and did not answer in time.
var errUnanswered = errors.New("the server did not answer in time, and nobody can tell what became of the message")

// unreachableError reports that no server answers.
type unreachableError struct {
	address string
	reason  error
}

func (e *unreachableError) Error() string {
	if errors.Is(e.reason, fs.ErrPermission) {
		return fmt.Sprintf("no server at %s: %v (%s)", e.address, e.reason, letIn(unixPath(e.address), "$USER"))
	}
	return fmt.Sprintf("no server at %s: %v (start nfcommsd, name another with --address, or use --device sim:; nfctl doctor says more)",
		e.address, e.reason)
}

func (e *unreachableError) Unwrap() error { return e.reason }

// sentinelCodes gives the exit codes of errors that their gRPC code does not
// distinguish; the first match counts.
var sentinelCodes = []struct {
	err  error
	code int
}{
	{errUnhealthy, exitUnhealthy},
	{errUnanswered, exitUnreachable},
	{syscall.EPIPE, exitPipe},
	{fs.ErrPermission, exitDenied},
	{nfcomms.ErrDeviceLost, exitDevice},
	{nfcomms.ErrFault, exitDevice},
	{nfcomms.ErrProtocol, exitDevice},
	{nfcomms.ErrStalled, exitDevice},
	{control.ErrShutdown, exitUnreachable},
	{nfcomms.ErrScheme, exitUsage},
	{nfcomms.ErrOption, exitUsage},
	{nfcomms.ErrTooLarge, exitUsage},
	{nfcomms.ErrInvalid, exitUsage},
	{control.ErrNotOpen, exitDevice}, // unless the address was wrong
	{nfcomms.ErrNotSubscribed, exitNotFound},
	{nfcomms.ErrNoProgram, exitNotFound},
	{nfcomms.ErrNotSupported, exitRefused},
	{nfcomms.ErrBusy, exitRefused},
	{context.DeadlineExceeded, exitTimeout},
	{os.ErrDeadlineExceeded, exitTimeout},
	{fs.ErrNotExist, exitUsage}, // a file named on the command line
}

// grpcCodes gives the exit codes of the rest.
var grpcCodes = map[codes.Code]int{
	codes.InvalidArgument:    exitUsage,
	codes.OutOfRange:         exitUsage,
	codes.NotFound:           exitNotFound,
	codes.PermissionDenied:   exitDenied,
	codes.Unauthenticated:    exitDenied,
	codes.Unavailable:        exitUnreachable,
	codes.DeadlineExceeded:   exitTimeout,
	codes.FailedPrecondition: exitRefused,
	codes.Aborted:            exitRefused,
	codes.AlreadyExists:      exitRefused,
	codes.ResourceExhausted:  exitRefused,
	codes.Unimplemented:      exitRefused,
}

// exitCode returns the exit code for the error of a command.
func exitCode(ctx context.Context, err error) int {
	var usage usageError
	var unreachable *unreachableError
	var some *partialError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, syscall.EPIPE):
		return exitPipe
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &some):
		return some.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &unreachable) && !errors.Is(err, fs.ErrPermission):
		return exitUnreachable
	}
	for _, s := range sentinelCodes {
		if errors.Is(err, s.err) {
			return s.code
		}
	}
	if code, ok := grpcCodes[status.Code(err)]; ok {
		return code
	}
	return exitFailed
}

// exitHelp is the table for the help text.
func exitHelp() string {
	var b strings.Builder
	for _, r := range exitTable {
		fmt.Fprintf(&b, "  %3d  %-12s %s\n", r.code, r.name, r.meaning)
	}
	return b.String()
}
