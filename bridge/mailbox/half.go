package mailbox

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/meter"
	"github.com/nfcomms/nfcomms/bridge/waiter"
)

// A half's state word is {transactions so far:48 | flags:16}, so that a call
// starts a transaction, and a completion ends it, with one store.
const (
	fActive   = 1 << iota // the host has a transaction under way
	fDone                 // it ended
	fOK                   // … delivered
	fBack                 // … withdrawn
	fRecall               // h2d: WITHDRAW was sent; d2h: the device wants its held offer back
	fIndirect             // it is a transfer
	fNews                 // the transfer moved on
	fOffer                // d2h: slot holds an offer of the device
	fHeld                 // d2h: a call looks at the offer
	fOwed                 // d2h: WITHDRAWN is still to be sent
	fParked               // the caller sleeps: a token wakes it
	fOver                 // the device ended the subscription
	fAsk                  // h2d: the audit wants to know whether the device has the offer
	flagBits  = 16
	flagMask  = 1<<flagBits - 1
)

// Why a half cannot be used any more.
const (
	shutHost = 1 << iota // closed here
	shutPeer             // closed by the device's process
	shutDown             // the device is lost, faulty or closed, and DMA is quiet
	shutAny  = shutHost | shutPeer | shutDown
)

// half is one direction of a channel. Its turn's holder runs the calls;
// completions come from whoever drains the mailbox, under the box's rx lock.
type half struct {
	turn  turn
	state atomic.Uint64
	shut  atomic.Uint32
	dir   abi.Direction
	box   *box
	ch    *Channel
	base  uint64        // id of transaction 0; written under rx while opening
	slot  abi.Slot      // h2d: how a message ended; d2h: the offer
	wake  chan struct{} // room for one token; made by the first sleep
	xfer  *transfer     // made by the first transfer
	spin  spin          // owned by the turn's holder

	mu       sync.Mutex   // guards sleepers, waiters and the park word's bit
	sleepers int          // calls and waiters that need a doorbell
	waiters  waiter.Queue // d2h: who is armed; h2d: the turn has them
	arms     atomic.Int32 // waiters

	asked  asked  // of the present h2d call
	seen   uint64 // the transaction that waited at the audit's last pass; the audit's own
	passes uint32 // … which has seen it wait so often

	sampler          meter.Sampler // of direct calls; owned by the turn's holder
	direct, indirect meter.Counter
	parked           atomic.Uint64
	lists, repeated  atomic.Uint64
	waiting          atomic.Int32 // calls that wait now
	flying           atomic.Int32 // lists of the transfer that were sent and not acked
}

// id returns the wide id of the transaction a state word stands for.
func (h *half) id(state uint64) uint64 { return h.base + state>>flagBits }

// begin starts the next transaction and returns its id. Must hold turn.
func (h *half) begin(flags uint64) uint64 {
	state := (h.state.Load()>>flagBits+1)<<flagBits | fActive | flags
	h.state.Store(state)
	return h.id(state)
}

// unbegin takes begin back when nothing was put. Must hold turn.
func (h *half) unbegin() { h.state.Store((h.state.Load()>>flagBits - 1) << flagBits) }

// setLocked changes flags that the half's caller may change at the same time,
// and wakes the caller. Must hold rx.
func (h *half) setLocked(add uint64) {
	if h.state.Or(add)&fParked != 0 {
		h.wakeUp()
	}
}

// wakeUp leaves the token that a sleeping caller takes.
func (h *half) wakeUp() {
	select {
	case h.wake <- struct{}{}:
	default: // it has one
	}
}

// tell marks the half as shut and wakes whoever sleeps or waits for it.
func (h *half) tell(why uint32) {
	h.mu.Lock()
	h.shut.Or(why)
	h.mu.Unlock()
	if h.state.Load()&fParked != 0 {
		h.wakeUp()
	}
	h.wakeAll()
}

// errPeerClosed is what calls of a half get that the device's process closed.
var errPeerClosed = fmt.Errorf("%w by the device", bridge.ErrClosed)

// err returns the error that calls of a shut half get.
func (h *half) err() error {
	switch why := h.shut.Load(); {
	case why&shutDown != 0:
		return h.box.ep.err()
	case why&shutHost != 0:
		return bridge.ErrClosed
	default:
		return errPeerClosed
	}
}

// header returns the header of a message about transaction id.
func (h *half) header(t abi.Type, length int, id uint64) abi.Header {
	return abi.MakeHeader(t, length, h.box.ep.low, uint16(id), h.ch.id)
}

// unlock gives the turn to the next, or what the device offers to who waits
// for it.
func (h *half) unlock() {
	h.turn.unlock()
	h.pass()
}
