package group

import "time"

// Transport joins the members of one group.
type Transport interface {
	// connect makes this endpoint a rank of a group of so many. It does not wait for the others:
	// frames for a member that has not connected yet wait for room. ErrRankTaken if another
	// endpoint is that rank.
	connect(rank, size int) (memberLink, error)
}

// memberLink is a member's end of a Transport. The conformance suite holds every link
// to what stands here. One goroutine uses it at a time, but for Wake.
//
// The frames from one member to another arrive in order, each once, then the end of that member. A
// send is buffered: an algorithm that needs a rendezvous builds it on top, by an answer of the
// receiver.
type memberLink interface {
	// TrySend puts a frame on its way: true if all of it has been copied,
	// false if there is no room now. After false it is called again with the
	// same frame, or the frame is given up and never arrives. An error is
	// ErrGone: what is sent to that rank never arrives any more; or ErrTooLarge:
	// this frame never does.
	TrySend(to int, h frameHeader, data []byte) (bool, error)
	// TryReceive fills in the next frame of any member, false if there is
	// none. Its Data are valid, and following frames of the same member may
	// stay behind, until Release.
	TryReceive(f *frame) bool
	// Release gives back the Data of a frame.
	Release(f *frame)
	// Wait returns once so many frames may be there, an end or a frame that
	// Urgent is true of; or room for what TrySend refused last; when Wake was
	// called, or at the time; the zero time sets no bound. It may
	// return early.
	Wait(frames int, until time.Time)
	// Wake has a Wait return that runs, or the next one. Any goroutine may
	// call it.
	Wake()
	// Close leaves: the others see an end of this member after its frames. It
	// is idempotent.
	Close() error
}

// expecter is a link that finds the frame a step waits for without looking for any
// other.
type expecter interface {
	// expect returns the bytes of the next frame of a member if it has arrived, is in one
	// piece, and has this header. Else the frame stays for TryReceive. The bytes are
	// valid, and following frames of the same member may stay behind, until giveBack.
	expect(from int, h frameHeader) ([]byte, bool)
	giveBack()
	// pause passes the moment after a look for the frame of a member, of which there
	// were so many before. False: it is time for TryReceive and Wait.
	pause(from, round int) bool
}

// frameHeader is what a frame is part of. It is 16 bytes on any wire.
type frameHeader struct {
	Step  uint64
	Epoch uint32 // grows with each Shrink
	Tag   uint16 // distinguishes the phases of a step
	Op    operation
	Flags frameFlags
}

// Urgent reports whether a member that waits for several frames must see this one at once.
func (h frameHeader) Urgent() bool { return h.Op >= opControl }

// operation is the operation that a frame belongs to.
type operation uint8

// Operations. Operations after opControl are not part of a step.
const (
	opExchange operation = iota
	opBarrier
	opAllgather
	opReduce
	opHello
	opControl
	opAck     // Tag of the frame that was taken
	opCredit  // Step: exchanges that the sender finished
	opLast    // Step: the exchange after which the sender has no data
	opRevoke  // the sender gave this epoch up
	opPropose // the sender proposes the group of this epoch
)

var opNames = [...]string{"exchange", "barrier", "allgather", "reduce", "join", "?", "ack", "credit", "last", "revoke", "shrink"}

func (o operation) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "?"
}

// frameFlags are flags of a frame.
type frameFlags uint8

const (
	// flagSync: the sender waits for an answer once the frame is taken.
	flagSync frameFlags = 1 << iota
)

// frame is what a link delivers: some bytes, or the end of a member.
type frame struct {
	frameHeader
	// From is the rank of its sender.
	From int
	// The holder of the frame may write to Data.
	Data []byte
	// End is nil but in the last frame of a member: ErrGone if it ended
	// without leaving, ErrClosed if it left.
	End error
	// Lease is the link's own.
	Lease any
}
