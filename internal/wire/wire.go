package wire

import (
	"bytes"
	"encoding/binary"
	"structs"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Sizes and limits (enum nfc_limits).
const (
	SlotSize    = 64
	ListEntries = 6 // page entries in a gather list
	// EagerEntries and EagerBytes bound eager transfers: once one moves nothing ends it early.
	EagerEntries = 4
	EagerBytes   = 1 << 16
	RunPages     = 1 << 16 // pages of a run, at most
	PageShift    = 12
	MailboxesMax = 64
	IslandsMax   = 16
	SlotsMin     = 16 // slots per ring, a power of two
	SlotsMax     = 1 << 14
	// WindowMax bounds the lists in flight per transfer.
	WindowMax = 1 << 13
	// RepeatsMax is how often a device may ask for the same list again before a
	// host gives the transfer up.
	RepeatsMax = 3
	// WhySize is the room for text in B, C and Name of the reply to a refused LOAD.
	WhySize = 40
	Magic   = 0x314d434e
)

// Type is what a slot carries (enum nfc_type).
type Type uint8

// Message types.
const (
	TypeNone      Type = iota
	TypeDirect         // both ways: a message of 0..56 bytes
	TypeIndBegin       // both ways: a transfer is offered (Begin)
	TypeIndList        // h2d: page entries (Gather)
	TypeAck            // both ways: completion record (Ack)
	TypeDone           // d2h: every byte moved (Ack)
	TypeFin            // h2d: the commit of a transfer (Note)
	TypeWithdraw       // both ways: take an unaccepted message back (Note)
	TypeWithdrawn      // both ways: it was taken back (Note)
	TypeAbort          // h2d: end a transfer (Note)
	TypeAborted        // d2h: ended, the DMA engine is quiet (Ack)
	TypeClose          // both ways: an end is closed (Close)
	TypeError          // both ways: refused or failed (Ack)
	TypeHello          // area page: version and limits (Hello)
	TypeHeartbeat      // area page: life sign (Heartbeat)
	TypeOffer          // both ways: notify me when you wait to read (Note)
	TypeReady          // both ways: it waits (Note)
	TypeEager          // h2d: a transfer with its pages (Eager)
	TypeCall           // h2d: a question of 0..PayloadSize bytes, see CallNow
	TypeAnswer         // d2h: as many bytes, which end the CALL of that sequence
	TypeCount
)

// State is how far the transaction of a completion record is (enum nfc_state).
type State uint16

// Transaction states.
const (
	StateConsumed State = iota // a message, or an eager transfer, was accepted
	StateReady                 // both ends agreed: lists may flow
	StateMoving                // progress
	StateRepeat                // send again from list number Lists
	StateDone                  // every byte moved
	StateFailed                // ended, see the status
	StateCount
)

// Slot header fields (enum nfc_header_field).
const (
	hdrTypeShift     = 0  // 7 bits
	hdrPhaseShift    = 7  // 1 bit: flips every lap of the ring
	hdrLengthShift   = 8  // 8 bits: payload bytes; entries of a list
	hdrEpochShift    = 16 // 8 bits
	hdrSequenceShift = 24 // 16 bits: low bits of the transaction id
	hdrChannelShift  = 40 // 24 bits
)

// Header is the first word of a slot:
// {channel:24 | sequence:16 | epoch:8 | length:8 | phase:1 | type:7}.
type Header uint64

// MakeHeader packs a header with phase 0; the ring sets the phase.
func MakeHeader(t Type, length int, epoch uint8, sequence uint16, channel uint32) Header {
	return Header(t)&0x7f<<hdrTypeShift |
		Header(length&0xff)<<hdrLengthShift |
		Header(epoch)<<hdrEpochShift |
		Header(sequence)<<hdrSequenceShift |
		Header(channel&(abi.ChannelsMax-1))<<hdrChannelShift
}

// WithPhase returns h with the phase bit set to p, 0 or 1.
func (h Header) WithPhase(p uint64) Header { return h | Header(p)<<hdrPhaseShift }

// Type returns the message type; it may be one this version does not know.
func (h Header) Type() Type { return Type(h >> hdrTypeShift & 0x7f) }

// Phase returns the lap bit, 0 or 1.
func (h Header) Phase() uint64 { return uint64(h >> hdrPhaseShift & 1) }

// Length returns payload bytes; of a gather list or an eager transfer the entries in use, with
// ListD2H set for the pages of a device-to-host transfer.
func (h Header) Length() int { return int(h >> hdrLengthShift & 0xff) }

// Epoch returns the low bits of the device epoch the message belongs to.
func (h Header) Epoch() uint8 { return uint8(h >> hdrEpochShift) }

// Sequence returns the low 16 bits of the transaction id.
func (h Header) Sequence() uint16 { return uint16(h >> hdrSequenceShift) }

// Channel returns the channel id.
func (h Header) Channel() uint32 { return uint32(h >> hdrChannelShift) }

// Slot is a mailbox slot: one cache line of header and payload.
type Slot struct {
	_       structs.HostLayout
	Header  uint64
	Payload [7]uint64
}

// Bytes returns the payload as bytes of s's own memory.
func (s *Slot) Bytes() *[abi.PayloadSize]byte {
	return (*[abi.PayloadSize]byte)(unsafe.Pointer(&s.Payload))
}

// Ack returns the payload as a completion record of s's own memory.
func (s *Slot) Ack() *Ack { return (*Ack)(unsafe.Pointer(&s.Payload)) }

// Begin returns the payload as a transfer offer of s's own memory.
func (s *Slot) Begin() *Begin { return (*Begin)(unsafe.Pointer(&s.Payload)) }

// Eager returns the payload as an eager transfer of s's own memory.
func (s *Slot) Eager() *Eager { return (*Eager)(unsafe.Pointer(&s.Payload)) }

// Gather returns the payload as a gather list of s's own memory.
func (s *Slot) Gather() *Gather { return (*Gather)(unsafe.Pointer(&s.Payload)) }

// Note returns the payload as a note of s's own memory.
func (s *Slot) Note() *Note { return (*Note)(unsafe.Pointer(&s.Payload)) }

// Close returns the payload as a close message of s's own memory.
func (s *Slot) Close() *Close { return (*Close)(unsafe.Pointer(&s.Payload)) }

// Hello returns the payload as a hello of s's own memory.
func (s *Slot) Hello() *Hello { return (*Hello)(unsafe.Pointer(&s.Payload)) }

// Heartbeat returns the payload as a heartbeat of s's own memory.
func (s *Slot) Heartbeat() *Heartbeat { return (*Heartbeat)(unsafe.Pointer(&s.Payload)) }

// Control returns the payload as a control operation of s's own memory.
func (s *Slot) Control() *Control { return (*Control)(unsafe.Pointer(&s.Payload)) }

// Page entry fields (enum nfc_entry_field).
const (
	entryLengthShift = 0
	entryOffsetShift = 12
	entryPFNShift    = 24
)

// Entry is one page entry: {pfn:40 | offset:12 | length-1:12}.
type Entry uint64

// MakeEntry describes length bytes, 1..PageSize, at a bus address; they must
// not cross a page.
func MakeEntry(address uint64, length int) Entry {
	return Entry(address>>PageShift<<entryPFNShift |
		address&(abi.PageSize-1)<<entryOffsetShift |
		uint64(length-1)<<entryLengthShift)
}

// Address returns the bus address of the first byte.
func (e Entry) Address() uint64 { return uint64(e >> entryOffsetShift) }

// Length returns the number of bytes, 1..PageSize.
func (e Entry) Length() int { return int(e&(abi.PageSize-1)) + 1 }

// Run entry fields (enum nfc_run_field).
const (
	runPagesShift   = 0
	runAddressShift = 16
)

// MakeRun describes the bytes from an address to the end of so many pages, 1..RunPages, which must
// not pass 2^48: {address:48 | pages-1:16}. It stands in lists with ListRuns.
func MakeRun(address uint64, pages int) Entry {
	return Entry(address<<runAddressShift | uint64(pages-1)<<runPagesShift)
}

// RunAddress returns the bus address of a run's first byte.
func (e Entry) RunAddress() uint64 { return uint64(e >> runAddressShift) }

// RunLength returns the bytes to the end of a run's last page. The last run of a transfer ends with
// the transfer.
func (e Entry) RunLength() uint64 {
	return (uint64(e&(RunPages-1))+1)<<PageShift - e.RunAddress()&(abi.PageSize-1)
}

// Length field of a gather list's header (enum nfc_list_length). Both halves of
// a channel may move at once, so a list says whose pages it holds.
const (
	ListCountMask = 0x1f
	ListSum       = 0x20 // of all lists of a transfer: DONE has a checksum
	ListRuns      = 0x40 // the entries are runs
	ListD2H       = 0x80
)

// Span returns where an entry of a list with this header starts, and the bytes to its end; the last
// run of a transfer ends with the transfer.
func (h Header) Span(e Entry) (address, bytes uint64) {
	if h.Length()&ListRuns != 0 {
		return e.RunAddress(), e.RunLength()
	}
	return e.Address(), uint64(e.Length())
}

// Gather list tail fields (enum nfc_gather_field).
const (
	tailNumberShift      = 0
	tailOutstandingShift = 16
)

// Gather is the payload of a gather list: six page entries, unused ones zero,
// and {outstanding:48 | list number:16}.
type Gather struct {
	_     structs.HostLayout
	Entry [ListEntries]Entry
	Tail  uint64
}

// MakeTail packs the bytes outstanding after a list and the list's number.
func MakeTail(outstanding uint64, number uint16) uint64 {
	return outstanding<<tailOutstandingShift | uint64(number)<<tailNumberShift
}

// Outstanding returns the bytes still to send after this list.
func (g *Gather) Outstanding() uint64 { return g.Tail >> tailOutstandingShift }

// Number returns the low 16 bits of the list number.
func (g *Gather) Number() uint16 { return uint16(g.Tail >> tailNumberShift) }

// Begin is the payload of a transfer offer.
type Begin struct {
	_           structs.HostLayout
	Transaction uint64
	Size        uint64 // bytes
	TimeoutNS   uint64 // how long the target may stay unready; 0: for ever
	_           [4]uint64
}

// Eager is the payload of a transfer that brings its pages: an offer to the device, or the place of the
// bytes of a transfer to the host.
type Eager struct {
	_           structs.HostLayout
	Transaction uint64
	Size        uint64 // bytes: the sum of the entries
	TimeoutNS   uint64 // h2d: as in Begin; d2h: zero
	Entry       [EagerEntries]Entry
}

// Ack is a completion record: ACK, DONE, ABORTED and ERROR.
type Ack struct {
	_           structs.HostLayout
	Transaction uint64
	Processed   uint64 // bytes moved so far
	Outstanding uint64 // bytes still to move; the peer's size with ErrSize
	Lists       uint32 // cumulative lists consumed
	State       State
	Status      abi.Status
	FaultIndex  uint32 // entry within the list that failed; of DONE with ListSum the CRC32C
	Direction   uint32 // whose transaction
	BeginNS     uint64 // device clock: the transaction arrived
	NowNS       uint64 // device clock: the record was written
}

// Note names a transaction: FIN, WITHDRAW, WITHDRAWN, ABORT, OFFER, READY.
type Note struct {
	_           structs.HostLayout
	Transaction uint64
	Direction   uint32 // whose transaction
	Status      uint32 // why
	_           [5]uint64
}

// Close means that the sender will not use some halves any more.
type Close struct {
	_          structs.HostLayout
	Halves     uint32 // 1 << Direction, ored
	Status     uint32 // why
	Generation uint64 // the subscription it belongs to
	_          [5]uint64
}

// Capability bits of Hello (enum nfc_capability).
const (
	CapLoad  = 1 << 0 // programs load at run time
	CapEager = 1 << 1 // TypeEager, of so many entries as Hello.Eager says
	CapRuns  = 1 << 2 // lists may have ListRuns
	// CapHostRings means that rings to the host are in Area.HostArea.
	CapHostRings = 1 << 3
	// CapRounds means that an ack follows each list of a transfer to the host.
	CapRounds = 1 << 4
	// CapReady means that a host answers OFFER, of another host, with READY.
	CapReady = 1 << 5
	// CapNames means that ControlListen and ControlConnect take a name.
	CapNames = 1 << 6
	// CapSum means that lists may have ListSum.
	CapSum = 1 << 7
	// CapCalls means TypeCall and TypeAnswer.
	CapCalls = 1 << 8
	// CapMove means ControlTicket, ControlVoid and ControlClaim.
	CapMove = 1 << 9
	// CapNews means that the host says in IslandLine.News where it put.
	CapNews  = 1 << 10
	CapKnown = 1<<11 - 1
)

// The length of the header of a TypeCall (enum nfc_call_length).
const (
	CallBytesMask = 0x3f
	CallNow       = 0x80 // refused with ErrTimeout unless the target waits
)

// Hello carries version, capabilities and limits.
type Hello struct {
	_             structs.HostLayout
	Magic         uint32
	Major         uint16
	Minor         uint16
	Capabilities  uint32
	Channels      uint32 // channel ids are below this
	Mailboxes     uint16 // a multiple of Islands
	Islands       uint16
	Slots         uint32 // per ring
	Window        uint32 // lists in flight per transfer
	BeatMS        uint32 // heartbeat interval
	MaxTransfer   uint64 // bytes
	ReadManagers  uint32
	WriteManagers uint32
	Contexts      uint32 // processes the device can run
	Eager         uint16 // entries of an eager transfer at most; without the capability zero
	Rsvd          uint16
}

// Island returns the island that serves a channel: ids are dealt to islands in
// blocks. The hello must be valid and the channel below Channels.
func (h *Hello) Island(channel uint32) int {
	islands := uint32(h.Islands)
	return int(channel / ((h.Channels + islands - 1) / islands))
}

// Mailbox returns the mailbox of a channel: an island has Mailboxes / Islands
// of them in a row.
func (h *Hello) Mailbox(channel uint32) int {
	each := int(h.Mailboxes) / int(h.Islands)
	return h.Island(channel)*each + int(channel)%each
}

// Heartbeat is the device's life sign.
type Heartbeat struct {
	_          structs.HostLayout
	Beat       uint64         // counts up by one each interval
	NowNS      uint64         // device clock
	Diagnostic abi.Diagnostic // health of the parts
	Processes  uint32         // running
	Messages   uint64         // taken from h2d mailboxes
	Bytes      uint64         // moved by the DMA engines
	Dropped    uint64         // messages refused as stale or malformed
	Parked     uint64         // requests waiting for a target
}

// Control operations (enum nfc_control_op).
const (
	ControlOpen    = 1 // A: target; reply A, B: next ids h2d, d2h; C: generation
	ControlStart   = 2 // Name, A: first target or 0, B: targets, C: argument; reply A: process, B: first target
	ControlStop    = 3 // A: process
	ControlLoad    = 4 // A: image bytes, then a transfer of them; reply Name
	ControlProgram = 5 // A: index; reply Name
	ControlMemory  = 6 // A: memory type; reply A: base, B: size, C: free bytes
	ControlRunning = 7 // A: process; reply B: 1 until it has returned, then 0
	ControlListen  = 8 // Name or none, A: anyone, B: Guests...; reply A: process, B: target, C: own
	// ControlConnect has A: the target of a listener, B: the number of a guest or 0. Or it has a Name, and
	// B: 1 to find listeners of other users. The reply has A: the target to open, B: the listener's own.
	ControlConnect = 9
	// ControlTicket has A: the target of an end, B: that of the channel it is to pass through. The reply has
	// A: a ticket.
	ControlTicket = 10
	ControlVoid   = 11 // A: target, B: ticket; reply B: 1 if the end has moved
	// ControlClaim has A: the target of the channel that carried a ticket, B: the ticket. The reply
	// has A: the target to open.
	ControlClaim = 12
)

// Which processes a host that listens knows of (enum nfc_guests).
const (
	GuestsNone = 0
	GuestsHere = 1 // of the same device
	GuestsAll  = 2 // of other nodes as well, to which it connects
)

// AcceptProcess is ored with the target that a listener offers its host: a process
// connected, and no host (enum nfc_accept). Of a process at another node it is that node and
// the number of the guest, laid out as an ID.
const AcceptProcess = 1 << 30

// Control is a request or reply on the control channel.
type Control struct {
	_       structs.HostLayout
	Op      uint16
	Status  uint16
	Request uint32 // repeated in the reply
	A, B, C uint64
	Name    [abi.NameSize]byte // NUL-terminated
}

// Why returns the reason that the reply to a refused LOAD has; empty if it has none, or
// something that is no text.
func (c *Control) Why() string {
	text := binary.LittleEndian.AppendUint64(make([]byte, 0, WhySize), c.B)
	text = append(binary.LittleEndian.AppendUint64(text, c.C), c.Name[:]...)
	text, _, _ = bytes.Cut(text, []byte{0})
	for _, b := range text {
		if b < ' ' || b > '~' {
			return ""
		}
	}
	return string(text)
}

// SetWhy puts a reason into the reply, which has room for WhySize-1 bytes of it.
func (c *Control) SetWhy(why string) {
	var text [WhySize]byte
	copy(text[:WhySize-1], why)
	c.B, c.C = binary.LittleEndian.Uint64(text[:]), binary.LittleEndian.Uint64(text[8:])
	copy(c.Name[:], text[16:])
}

// Device life (enum nfc_device_state).
const (
	DeviceOff     = 0
	DeviceBooting = 1
	DeviceReady   = 2
	DeviceFault   = 3
)

// Line is one word on a cache line of its own.
type Line struct {
	_    structs.HostLayout
	Word uint64
	_    [7]uint64
}

// IslandLine has the words between the host and an island, beside messages.
type IslandLine struct {
	_       structs.HostLayout
	Word    uint64 // device sets 1, host clears: it sleeps, ring it
	News    uint64 // host sets bits, device takes them: mailboxes of the island, with CapNews
	Watched uint64 // written by the device: 1 + the mailbox that needs no bit; 0: none
	_       [5]uint64
}

// Area is the first page of the mailbox area. Its offsets count from its start.
type Area struct {
	_             structs.HostLayout
	Magic         uint32
	Major         uint16
	Minor         uint16
	Size          uint64 // bytes of the whole area
	ParkOffset    uint64 // uint32 per channel, see ParkH2D
	MailboxOffset uint64 // first mailbox
	MailboxStride uint64 // bytes from one mailbox to the next
	Epoch         uint32 // counts resets
	State         uint32
	HostArea      uint64 // written by the host: bus address of a HostArea, with CapHostRings
	_             uint64
	DeviceHello   Slot
	HostHello     Slot
	Heartbeat     Slot
	Island        [IslandsMax]IslandLine
}

// Park word bits, written by the host: somebody sleeps for that half.
const (
	ParkH2D = 1 << abi.H2D
	ParkD2H = 1 << abi.D2H
)

// Mailbox precedes the slots of its h2d ring and its d2h ring. Both counters
// are cumulative and free-running.
type Mailbox struct {
	_       structs.HostLayout
	H2DHead Line // written by the device: slots it consumed
	D2HHead Line // written by the host: slots it consumed
}

// HostArea is where a host with CapHostRings is written to, in memory of its own. The d2h rings
// follow at HostAreaSize, mailbox by mailbox, and behind them the park words.
type HostArea struct {
	_         structs.HostLayout
	Heartbeat Slot
	Island    [IslandsMax]Line // written by the device: 1 while it sleeps
	Mailbox   [MailboxesMax]Mailbox
}

// Sizes of what is in an area beside slots.
const (
	AreaSize     = uint64(unsafe.Sizeof(Area{}))
	MailboxSize  = uint64(unsafe.Sizeof(Mailbox{})) // before its slots
	HostAreaSize = 12288                            // before the first ring
)

// ProgramABI is the version a loadable program must be built for.
const ProgramABI = abi.Major<<16 | 5
