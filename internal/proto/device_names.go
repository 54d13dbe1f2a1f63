package proto

// DeviceState is the state of a half's transaction as the device knows it.
type DeviceState uint8

// States of a half at the device.
const (
	DeviceIdle     DeviceState = iota // no transaction is under way
	DeviceMessage                     // a message is offered
	DeviceOffered                     // a transfer is offered
	DeviceMoving                      // lists arrive, the engine moves bytes
	DeviceEager                       // the engine moves the bytes of pages that came with the offer, or were posted
	DeviceCommit                      // DONE is out, FIN has not arrived
	DeviceQuestion                    // h2d: a question is offered
	DeviceTaken                       // h2d: the process has taken the question
	deviceStates
)

var deviceStateNames = [deviceStates]string{"idle", "message", "offered", "moving", "eager", "commit", "question", "taken"}

// String returns the state's name.
func (s DeviceState) String() string { return name(deviceStateNames[:], "state", int(s)) }

// DeviceMarks are what a half remembers at the device beside its state.
type DeviceMarks uint16

// Marks of a half at the device.
const (
	DeviceListed   DeviceMarks = 1 << iota // h2d: list 0 lies beside the offer
	DevicePages                            // h2d: the offer has its pages
	DeviceEnding                           // the transfer ends when the engine is quiet
	DeviceAborted                          // … and the host asked for that
	DevicePosted                           // d2h: pages lie here for the next transfer
	DeviceReadyDue                         // h2d: OFFER waits for READY
	DeviceShut                             // the host closed the half
	DeviceNotice                           // h2d: the process does not know of that yet
	DeviceClosed                           // the process closed the half
	deviceMarksAll = 1<<iota - 1

	// deviceBrief are the marks of a transaction: a half that turns idle has none of them.
	deviceBrief = DeviceListed | DevicePages | DeviceEnding | DeviceAborted
)

var deviceMarkNames = []string{"listed", "pages", "ending", "aborted", "posted", "READY due", "shut", "notice", "closed"}

// String names the marks.
func (m DeviceMarks) String() string { return joined(deviceMarkNames, uint(m)) }

// DeviceInput is an event of a half at the device: a message of the host that is about its present
// transaction, a call of the process, or the engine.
type DeviceInput uint8

// Inputs of the device's halves.
const (
	HearMessage   DeviceInput = iota // h2d: DIRECT under the next id
	HearBegin                        // h2d: IND_BEGIN under the next id
	HearPages                        // EAGER; h2d: under the next id; d2h: of the size that is offered
	HearBadBegin                     // h2d: IND_BEGIN or EAGER under the next id that breaks a rule
	HearBadPages                     // d2h: EAGER that breaks a rule, for what is offered
	HearPost                         // d2h: EAGER for the next id
	HearList                         // IND_LIST, the next one
	HearFirstList                    // h2d: IND_LIST 0 of several
	HearBadList                      // IND_LIST that breaks a rule
	HearWithdraw                     // h2d: WITHDRAW
	HearUnpost                       // d2h: WITHDRAW of the next id
	HearWithdrawn                    // d2h: WITHDRAWN
	HearAccept                       // d2h: ACK(CONSUMED) of a message
	HearFin                          // FIN; of an offer: of no bytes
	HearRefuse                       // d2h: ERROR
	HearAbort                        // ABORT
	HearOffer                        // h2d: OFFER of the next id
	HearClose                        // CLOSE, which names the half
	HearCall                         // h2d: CALL under the next id
	Take                             // h2d: the process takes what is offered: kind and size fit
	TakeQuestion                     // h2d: … a question, which it will answer
	TakeEmpty                        // h2d: … a transfer of no bytes
	TakeShort                        // h2d: what is offered is longer than the room it gives
	TakeOther                        // h2d: it reads another kind
	TakeSize                         // h2d: it reads a transfer of another size
	TakeRange                        // h2d: it reads into what is no memory
	Wait                             // h2d: it waits for an offer, or looks for one
	Read                             // h2d: it reads where nothing is offered
	Reply                            // h2d: channel_reply
	GiveMessage                      // d2h: channel_write
	GiveTransfer                     // d2h: channel_write_ind, of another size than what is posted, if anything
	GivePosted                       // d2h: channel_write_ind of the size that is posted
	Stop                             // d2h: the process is to stop
	CloseHalf                        // channel_close
	Deadline                         // h2d: nobody took the offer in time
	EngineMoved                      // lists, or many bytes, moved
	EngineBusy                       // a page is busy for now
	EngineFailed                     // a page cannot be reached
	EngineDone                       // all bytes moved
	EngineQuiet                      // nothing moves any more, of a transfer that ends
	deviceInputs
)

var deviceInputNames = [deviceInputs]string{
	"DIRECT", "IND_BEGIN", "EAGER", "bad offer", "bad pages", "posted EAGER", "IND_LIST", "IND_LIST 0 of several",
	"bad IND_LIST", "WITHDRAW", "WITHDRAW of posted pages", "WITHDRAWN", "ACK(CONSUMED)", "FIN", "ERROR", "ABORT", "OFFER", "CLOSE", "CALL",
	"take", "take a question", "take no bytes", "short read", "read of another kind", "read of another size", "read out of range", "wait", "read", "channel_reply",
	"channel_write", "channel_write_ind", "channel_write_ind of posted pages", "stop", "channel_close",
	"deadline", "moved", "busy", "failed", "done", "quiet",
}

// String describes the input.
func (i DeviceInput) String() string {
	if i > deviceInputs {
		return name(connectionInputNames[:], "input", int(i-deviceInputs))
	}
	return name(deviceInputNames[:], "input", int(i))
}

// ByHost reports whether the input is a message of the host.
func (i DeviceInput) ByHost() bool { return i < Take || i == HearReady || i == HearLate }

// Put is the slot that the device puts in a transition.
type Put uint8

// Slots that the device puts.
const (
	PutNothing   Put = iota
	PutReady         // READY
	PutConsumed      // ACK(CONSUMED)
	PutGo            // ACK(READY)
	PutMoved         // ACK(MOVING)
	PutRepeat        // ACK(REPEAT)
	PutDone          // DONE
	PutError         // ERROR
	PutAborted       // ABORTED
	PutBack          // WITHDRAWN
	PutDirect        // DIRECT
	PutBegin         // IND_BEGIN
	PutTakeBack      // WITHDRAW
	PutHalfClose     // CLOSE of the half
	PutOver          // CLOSE of both halves: the subscription is over
	PutAsk           // OFFER: whether the host waits
	PutAnswer        // ANSWER
	putCount
)

var putNames = [putCount]string{
	"", "READY", "ACK(CONSUMED)", "ACK(READY)", "ACK(MOVING)", "ACK(REPEAT)", "DONE", "ERROR", "ABORTED", "WITHDRAWN",
	"DIRECT", "IND_BEGIN", "WITHDRAW", "CLOSE", "CLOSE of both", "OFFER", "ANSWER",
}

// String names the slot.
func (p Put) String() string { return name(putNames[:], "slot", int(p)) }
