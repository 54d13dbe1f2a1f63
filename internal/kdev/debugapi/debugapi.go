package debugapi

import "structs"

// Bytes of the structures as of the first version, for ever.
const (
	AccessSizeFirst    = 64
	InterruptSizeFirst = 56
)

// InterruptMSMax is the longest wait, in milliseconds.
const InterruptMSMax = 60000

// AccessWrite is the flag of an access that writes (enum nfcomms_access_flags).
const AccessWrite = 1 << 0

// Flags of an interrupt that is switched in place of a wait (enum nfcomms_interrupt_flags).
const (
	InterruptOff = 1 << 0
	InterruptOn  = 1 << 1
)

// Access reads or writes one register.
type Access struct {
	_      structs.HostLayout
	Size   uint32
	Flags  uint32
	BAR    uint32
	Width  uint32 // bytes
	Offset uint64
	Value  uint64 // in: to write; out: what was read
	Rsvd   [4]uint64
}

// Interrupt waits for an interrupt, or switches it.
type Interrupt struct {
	_         structs.HostLayout
	Size      uint32
	Flags     uint32
	Vector    uint32
	TimeoutMS uint32
	Count     uint64 // in: return as soon as there were more; out: how many there were
	Rsvd      [4]uint64
}

// ioctl numbers: {direction:2 | size:14 | letter:8 | number:8}; sizes are those of the first version.
const (
	DebugIOCType = 0xE2
	IOCAccess    = 3<<30 | AccessSizeFirst<<16 | DebugIOCType<<8 | 0x80
	IOCInterrupt = 3<<30 | InterruptSizeFirst<<16 | DebugIOCType<<8 | 0x81
)
