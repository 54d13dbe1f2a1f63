package uapi

import "structs"

// Version of the interface, and the bytes of a message.
const (
	UAPIMajor   = 3
	UAPIMinor   = 1
	PayloadSize = 56
)

// Bytes of the structures as of version 3.0, for ever: part of the ioctl numbers.
const (
	InfoSizeFirst       = 144
	HealthSizeFirst     = 176
	OpSizeFirst         = 128
	CompletionSizeFirst = 152
	SubmitSizeFirst     = 40
	CallSizeFirst       = 48
	CancelSizeFirst     = 32
	ResetSizeFirst      = 72
	ChannelSizeFirst    = 128
	SetupSizeFirst      = 32
	RegisterSizeFirst   = 64
	UnregisterSizeFirst = 32
	EventfdSizeFirst    = 32
)

// How an operation ended (enum nfcomms_status): abi.Status, as the ioctl interface names it.
const (
	StatusOK           = 0
	StatusClosed       = 1
	StatusTimeout      = 2
	StatusSize         = 3
	StatusKind         = 4
	StatusTooLarge     = 5
	StatusRange        = 6
	StatusProto        = 7
	StatusDMA          = 8
	StatusAborted      = 9
	StatusWithdrawn    = 10
	StatusNoTarget     = 11
	StatusBusy         = 12
	StatusNoProgram    = 13
	StatusABI          = 14
	StatusNoMemory     = 15
	StatusInvalid      = 16
	StatusNotSupported = 17
	StatusStopped      = 18
	StatusReset        = 19
	StatusFault        = 20
	StatusStalled      = 21
	StatusCount        = 22
)

// Info describes the device.
type Info struct {
	_             structs.HostLayout
	Size          uint32
	UAPI          uint32 // major << 16 | minor
	ABI           uint32 // of the firmware, major << 16 | minor
	Epoch         uint32
	Channels      uint32
	Mailboxes     uint32
	Islands       uint32
	Slots         uint32
	Window        uint32
	BeatMS        uint32
	ReadManagers  uint32
	WriteManagers uint32
	Contexts      uint32
	Capabilities  uint32
	Vectors       uint32
	MaxOperations uint32 // in flight per file
	MaxTransfer   uint64 // bytes
	MemlockLimit  uint64 // bytes this process may pin; all ones: no limit
	MemlockUsed   uint64 // bytes it has pinned
	Driver        [24]byte
	Rsvd          [4]uint64
}

// State is the state of the device (enum nfcomms_state).
type State uint32

// Device states.
const (
	StateReady     State = iota
	StateFault           // broke the protocol: Reset clears it
	StateLost            // silent, or a call could not be ended
	StateResetting       // for a moment
	StateRemoved         // for good
)

// Health is the last heartbeat, and the driver's counters.
type Health struct {
	_             structs.HostLayout
	Size          uint32
	State         State
	Beat          uint64
	AgeNS         uint64
	Diagnostic    uint32
	Processes     uint32
	Messages      uint64
	Bytes         uint64
	DeviceDropped uint64
	Parked        uint64
	Interrupts    uint64
	Spurious      uint64
	Doorbells     uint64
	Dropped       uint64
	Faults        uint64
	Resets        uint64
	Lists         uint64
	Repeated      uint64
	Pinned        uint64 // bytes, all files
	Operations    uint32 // in flight in this file
	Blocked       uint32 // of those, not yet taken by the device's target
	Pins          uint64 // parts of memory that were pinned for transfers
	Regions       uint64 // of this file
	BusyPolled    uint64 // waits that ended by busy polling, all files
	Rsvd          uint64
}

// Operations (enum nfcomms_opcode).
const (
	OpSubscribe  = 1  // Target; Channel returns the handle
	OpClose      = 2  // Flags: halves
	OpSend       = 3  // Length bytes of Payload
	OpReceive    = 4  // at most Length bytes, into the completion's Payload
	OpSendInd    = 5  // Length bytes at Address
	OpReceiveInd = 6  // exactly Length bytes to Address
	OpNext       = 7  // look at the next offer
	OpArm        = 8  // Flags: half that may be ready
	OpAccept     = 9  // end a held receive: commit it
	OpRefuse     = 10 // … or not; with H2D: give back the turn of OpArm, whose id is Operation
	OpControl    = 11 // Payload: RequestStart and others; Address and Length for a load
	OpAsk        = 12 // Length bytes of Payload, as a question; since version 3.1
	OpCount      = 13
)

// Flags of an operation (enum nfcomms_op_flags).
const (
	H2D     = 1 << 0 // OpClose, OpArm: the half that sends
	D2H     = 1 << 1 // OpClose, OpArm: the half that receives
	Nowait  = 1 << 2 // sends, receives, OpNext: only if the target is there now
	Hold    = 1 << 3 // OpReceive, OpReceiveInd: OpAccept or OpRefuse decides; OpArm: keep the turn
	Stamped = 1 << 4 // sends, receives: fill Stamps (3.1)
)

// Op is one operation.
type Op struct {
	_         structs.HostLayout
	Opcode    uint16
	Flags     uint16
	Channel   uint32 // handle
	UserData  uint64 // the completion has it; may repeat
	Address   uint64 // in the caller's memory
	Length    uint64
	TimeoutNS uint64 // OpSendInd: how long the target may stay unready; 0: for ever
	Epoch     uint32 // OpSubscribe, OpControl: it starts in that epoch or ends with ESTALE; 0: any
	Target    uint32 // OpSubscribe: the far end
	Region    uint32 // OpSendInd, OpReceiveInd: handle; 0: the bytes are at Address
	Rsvd      uint32
	Offset    uint64 // in the region
	Operation uint64 // OpRefuse with H2D: id of an OpArm
	Payload   [PayloadSize]byte
}

// Flags of a completion (enum nfcomms_completion_flags).
const (
	Indirect = 1 << 0 // OpNext: a transfer is offered, else a message
	NotNow   = 1 << 1 // Nowait: the target was not there, nothing happened
	Held     = 1 << 2 // Hold: waits for OpAccept or OpRefuse
	Taken    = 1 << 3 // OpAsk: the target took a question, and Payload has its answer if Status is OK
)

// Completion is how an operation ended.
type Completion struct {
	_           structs.HostLayout
	UserData    uint64
	Opcode      uint16
	Flags       uint16
	Status      uint32 // StatusOK …, or abi.Status
	Channel     uint32 // handle
	Error       uint32 // errno where the host refused
	Length      uint64 // bytes received or offered
	Processed   uint64 // bytes moved when a transfer failed
	Outstanding uint64 // bytes that were still to move
	PeerSize    uint64 // the device's size
	List        uint32 // gather list that failed
	Entry       uint32 // entry in it that failed
	Lists       uint32 // of a transfer: gather lists sent
	Repeated    uint32 // of a transfer: rounds sent again
	Payload     [PayloadSize]byte
	ID          uint64 // of the operation
	Epoch       uint32 // that the operation was in; 0: in none
	Rsvd        uint32
	Limit       uint64 // bytes, at most, where more were asked for
}

// Stamps says when parts of an operation were done; the header has what each means. The first five
// are of CLOCK_MONOTONIC, the others claims of the device, of its own clock.
type Stamps struct {
	_           structs.HostLayout
	TakenNS     uint64
	ReadyNS     uint64
	PutNS       uint64
	AnsweredNS  uint64
	CompletedNS uint64
	BeganNS     uint64
	MetNS       uint64
	DoneNS      uint64
}

// Record is a completion with what later versions add to it; Setup asks for it.
type Record struct {
	_          structs.HostLayout
	Completion Completion
	Stamps     Stamps
}

// Requests of OpControl (enum nfcomms_control), the first field of its payload.
const (
	ControlStart   = 2 // RequestStart
	ControlStop    = 3 // RequestProcess
	ControlLoad    = 4 // RequestLoad
	ControlProgram = 5 // RequestProgram
	ControlMemory  = 6 // RequestMemory
	ControlRunning = 7 // RequestProcess
)

// Bytes of names and texts, their NUL included.
const (
	NameLength = 24
	TextLength = 40
)

// RequestStart runs a program as a process.
type RequestStart struct {
	_        structs.HostLayout
	Request  uint16
	Status   uint16 // out
	Targets  uint32
	Argument uint64
	Process  uint64 // out
	First    uint32 // in: 0 for any; out
	Rsvd     uint32
	Name     [NameLength]byte
}

// RequestProcess stops a process, or asks for it.
type RequestProcess struct {
	_       structs.HostLayout
	Request uint16
	Status  uint16 // out
	Running uint32 // out, of ControlRunning
	Process uint64
	Rsvd    [5]uint64
}

// RequestLoad brings in the programs of an image.
type RequestLoad struct {
	_       structs.HostLayout
	Request uint16
	Status  uint16 // out
	Rsvd    uint32
	Text    [TextLength]byte // out: name of the first program, or why it was refused
	Rsvd1   uint64
}

// RequestProgram names a program.
type RequestProgram struct {
	_       structs.HostLayout
	Request uint16
	Status  uint16 // out
	Index   uint32
	Name    [NameLength]byte // out
	Rsvd    [3]uint64
}

// RequestMemory describes one of the device's types of memory.
type RequestMemory struct {
	_       structs.HostLayout
	Request uint16
	Status  uint16 // out
	Kind    uint32
	Base    uint64 // out
	Bytes   uint64 // out
	Unused  uint64 // out
	Rsvd    [3]uint64
}

// Submit hands over operations.
type Submit struct {
	_        structs.HostLayout
	Size     uint32
	Count    uint32 // 1..256
	Ops      uint64 // address of Count operations
	OpSize   uint32
	Accepted uint32 // out
	Error    uint32 // out: errno of the next one
	Rsvd     uint32
	FirstID  uint64 // out: id of the first operation; the others have the next ones
}

// Call is one operation, waited for.
type Call struct {
	_              structs.HostLayout
	Size           uint32
	Flags          uint32
	Op             uint64 // address
	Completion     uint64 // address
	OpSize         uint32
	CompletionSize uint32
	Rsvd           [2]uint64
}

// Setup is how a file wants its completions.
type Setup struct {
	_              structs.HostLayout
	Size           uint32
	Flags          uint32
	CompletionSize uint32 // of the records that are read
	BusyPollUS     uint32 // how long a wait looks for a record before it sleeps
	Rsvd           [4]uint32
}

// Cancel withdraws what was not taken and aborts what moves.
type Cancel struct {
	_     structs.HostLayout
	Size  uint32
	Flags uint32
	ID    uint64 // of an operation that was submitted
	Rsvd  [2]uint64
}

// Reset ends the device's epoch and boots the next.
type Reset struct {
	_         structs.HostLayout
	Size      uint32
	Flags     uint32
	Channels  uint32 // shape of the next epoch; 0: the device's own
	Mailboxes uint32
	Islands   uint32
	Slots     uint32
	Window    uint32
	TimeoutMS uint32 // how long an offer may wait for its target
	EMEM      uint64 // bytes
	Rsvd      [4]uint64
}

// Flags of a region (enum nfcomms_region_flags).
const (
	RegionReadOnly = 1 << 0 // sends use it, and it need not be writable
	RegionDMABuf   = 1 << 1 // the bytes are those of FD
)

// Register has memory pinned and mapped for the device, once.
type Register struct {
	_       structs.HostLayout
	Size    uint32
	Flags   uint32
	Address uint64 // in the caller's memory
	Length  uint64
	FD      int32  // of a dma-buf
	Region  uint32 // out: handle
	Offset  uint64 // in it
	Rsvd    [3]uint64
}

// Unregister ends a region.
type Unregister struct {
	_      structs.HostLayout
	Size   uint32
	Flags  uint32
	Region uint32 // handle
	Rsvd0  uint32
	Rsvd   [2]uint64
}

// Eventfd has an eventfd signalled when there is something to read.
type Eventfd struct {
	_     structs.HostLayout
	Size  uint32
	Flags uint32
	FD    int32 // -1: none
	Rsvd  [5]uint32
}

// Where the transaction of a half stands (enum nfcomms_half_state).
const (
	HalfUnknown   = 0
	HalfIdle      = 1
	HalfOffered   = 2
	HalfAnswering = 3
	HalfMoving    = 4
	HalfComplete  = 5
)

// HalfInfo is one direction of a channel: who waits for what.
type HalfInfo struct {
	_           structs.HostLayout
	State       uint32
	Queued      uint32 // operations behind the one under way
	Transaction uint64
	SleptNS     uint64 // since it began, or the device last reported about it
	Rsvd        uint64
}

// Channel is what a channel of this file did, and does.
type Channel struct {
	_        structs.HostLayout
	Size     uint32
	Channel  uint32 // in: handle
	Target   uint32
	Halves   uint32 // H2D, D2H: the open ones
	Lists    uint64 // gather lists sent since OpSubscribe
	Repeated uint64 // rounds sent again
	H2D      HalfInfo
	D2H      HalfInfo
	Rsvd     [4]uint64
}

// ioctl numbers: {direction:2 | size:14 | letter:8 | number:8}; sizes are those of the first version.
const (
	IOCType    = 0xE2
	IOCInfo    = 3<<30 | InfoSizeFirst<<16 | IOCType<<8 // number 0
	IOCHealth  = 3<<30 | HealthSizeFirst<<16 | IOCType<<8 | 0x01
	IOCSubmit  = 3<<30 | SubmitSizeFirst<<16 | IOCType<<8 | 0x10
	IOCCall    = 3<<30 | CallSizeFirst<<16 | IOCType<<8 | 0x11
	IOCCancel  = 1<<30 | CancelSizeFirst<<16 | IOCType<<8 | 0x12
	IOCReset   = 1<<30 | ResetSizeFirst<<16 | IOCType<<8 | 0x05
	IOCChannel = 3<<30 | ChannelSizeFirst<<16 | IOCType<<8 | 0x06
	IOCSetup   = 1<<30 | SetupSizeFirst<<16 | IOCType<<8 | 0x07

	IOCRegister   = 3<<30 | RegisterSizeFirst<<16 | IOCType<<8 | 0x13
	IOCUnregister = 1<<30 | UnregisterSizeFirst<<16 | IOCType<<8 | 0x14
	IOCEventfd    = 1<<30 | EventfdSizeFirst<<16 | IOCType<<8 | 0x0a
)
