package bridge

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Code is what one device status means elsewhere.
type Code struct {
	// Reason is the upper-case name used in metrics and over gRPC.
	Reason string
	// Err is the Go sentinel; nil for abi.OK.
	Err error
	// Errno is what the kernel module returns for it.
	Errno syscall.Errno
	// GRPC is the canonical gRPC code number.
	GRPC uint32
}

// codes is the one table of meanings, by abi.Status.
var codes = [abi.StatusCount]Code{
	abi.OK:              {"OK", nil, 0, 0},
	abi.ErrClosed:       {"CLOSED", ErrClosed, syscall.EPIPE, 9},
	abi.ErrTimeout:      {"TARGET_TIMEOUT", ErrTargetTimeout, syscall.ETIMEDOUT, 4},
	abi.ErrSize:         {"SIZE_MISMATCH", ErrSizeMismatch, syscall.EMSGSIZE, 9},
	abi.ErrKind:         {"KIND_MISMATCH", ErrKindMismatch, syscall.EPROTOTYPE, 9},
	abi.ErrTooLarge:     {"TOO_LARGE", ErrTooLarge, syscall.E2BIG, 3},
	abi.ErrRange:        {"RANGE", ErrRange, syscall.ERANGE, 11},
	abi.ErrProto:        {"PROTOCOL", ErrProtocol, syscall.EPROTO, 13},
	abi.ErrDMA:          {"DMA", ErrDMA, syscall.EIO, 15},
	abi.ErrAborted:      {"ABORTED", ErrAborted, syscall.ECONNABORTED, 10},
	abi.ErrWithdrawn:    {"WITHDRAWN", ErrWithdrawn, syscall.ECANCELED, 1},
	abi.ErrNoTarget:     {"NOT_SUBSCRIBED", ErrNotSubscribed, syscall.ENXIO, 5},
	abi.ErrBusy:         {"BUSY", ErrBusy, syscall.EBUSY, 9},
	abi.ErrNoProgram:    {"NO_PROGRAM", ErrNoProgram, syscall.ENOENT, 5},
	abi.ErrABI:          {"ABI", ErrABI, syscall.ENOEXEC, 9},
	abi.ErrNoMemory:     {"NO_MEMORY", ErrNoMemory, syscall.ENOMEM, 8},
	abi.ErrInvalid:      {"INVALID", ErrInvalid, syscall.EINVAL, 3},
	abi.ErrNotSupported: {"NOT_SUPPORTED", ErrNotSupported, syscall.EOPNOTSUPP, 12},
	abi.ErrStopped:      {"STOPPED", ErrStopped, syscall.EINTR, 10},
	abi.ErrReset:        {"DEVICE_LOST", ErrDeviceLost, syscall.ENODEV, 14},
	abi.ErrFault:        {"FAULT", ErrFault, syscall.EHOSTDOWN, 13},
	abi.ErrStalled:      {"STALLED", ErrStalled, errnoStalled, 10},
}

// CodeOf returns the meanings of a status; ok is false for one that this
// version does not know.
func CodeOf(s abi.Status) (c Code, ok bool) {
	if int(s) >= len(codes) {
		return Code{}, false
	}
	return codes[s], true
}

// Error returns the sentinel for a status, nil for abi.OK.
func Error(s abi.Status) error {
	if c, ok := CodeOf(s); ok {
		return c.Err
	}
	return fmt.Errorf("device status %d: %w", s, ErrProtocol)
}

// StatusOf returns the status whose sentinel an error is. ok is false for an
// error that no status stands for. A withdrawal's cause does not count.
func StatusOf(err error) (s abi.Status, ok bool) {
	if errors.Is(err, ErrWithdrawn) {
		return abi.ErrWithdrawn, true
	}
	for s := abi.OK + 1; s < abi.StatusCount; s++ {
		if errors.Is(err, codes[s].Err) {
			return s, true
		}
	}
	return abi.OK, err == nil
}
