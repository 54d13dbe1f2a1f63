package abi

import "fmt"

// Version, sizes and limits (enum nfc_limits).
const (
	Major       = 2
	Minor       = 0
	PayloadSize = 56 // 14 registers of 4 bytes
	PageSize    = 4096
	// ChannelsMax bounds channel ids: 24 bits.
	ChannelsMax = 1 << 24
	// NameSize is the room for the name of a program or listener, its NUL included.
	NameSize = 24
)

// Status is the one code for every refusal and failure (enum nfc_status).
type Status uint16

// Statuses. Package bridge maps each to a sentinel error.
const (
	OK              Status = iota
	ErrClosed              // the end is closed
	ErrTimeout             // the target was not ready in time
	ErrSize                // sizes of the two ends differ
	ErrKind                // one end is direct, the other indirect
	ErrTooLarge            // over a limit
	ErrRange               // outside device memory
	ErrProto               // the peer broke the protocol
	ErrDMA                 // the DMA engine could not reach a page
	ErrAborted             // the host aborted the transfer
	ErrWithdrawn           // taken back before it was accepted
	ErrNoTarget            // no such target, or not subscribed
	ErrBusy                // in use
	ErrNoProgram           // no program of that name
	ErrABI                 // built for another ABI
	ErrNoMemory            // out of device resources
	ErrInvalid             // a field has no meaning
	ErrNotSupported        // this device cannot
	ErrStopped             // the program was asked to stop
	ErrReset               // the device was reset
	ErrFault               // the device is in fault
	ErrStalled             // the device beat, but the transfer did not move on
	StatusCount
)

// statusText are the names that nfc_abi.h gives, without their prefix.
var statusText = [StatusCount]string{
	"OK", "ECLOSED", "ETIMEOUT", "ESIZE", "EKIND", "ETOOLARGE", "ERANGE", "EPROTO", "EDMA", "EABORTED",
	"EWITHDRAWN", "ENOTARGET", "EBUSY", "ENOPROGRAM", "EABI", "ENOMEM", "EINVAL", "ENOTSUP", "ESTOPPED",
	"ERESET", "EFAULT", "ESTALLED",
}

// String returns the name of enum nfc_status, as "ECLOSED", or the number of one without a name.
func (s Status) String() string {
	if s < StatusCount {
		return statusText[s]
	}
	return fmt.Sprint(uint16(s))
}

// Direction names the half of a channel by the way its data flows.
type Direction uint32

// Directions.
const (
	H2D Direction = iota
	D2H
)

// String returns "h2d" or "d2h".
func (d Direction) String() string {
	if d == H2D {
		return "h2d"
	}
	return "d2h"
}

// Targets that are always there (enum nfc_target).
const (
	TargetControl   = 0 // the host manager's own; not for subscribers
	TargetLoopback  = 1 // returns every message and transfer
	TargetLog       = 2 // messages are log lines; returns the device's
	TargetTelemetry = 3 // u32 page in, seven u64 counters out
	TargetTime      = 4 // u64 host ns in, {host, device in, device out} out
	TargetFirst     = 16
	TargetHosts     = 0xff0000 // from here on: hosts that listen
)

// Device memory types and the place of the type in a 40-bit address.
const (
	CLS         = 0
	CTM         = 1
	IMEM        = 2
	EMEM        = 3
	MemoryCount = 4
	MemoryShift = 38
)
