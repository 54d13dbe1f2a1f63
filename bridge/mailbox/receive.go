package mailbox

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// shutHere are the reasons that forbid to take even what is already offered.
const shutHere = shutHost | shutDown | shutMoved

// Why a receive takes nothing.
var (
	errReceiving       = fmt.Errorf("another call receives: %w", bridge.ErrBusy)
	errTransferOffered = fmt.Errorf("a transfer is offered: %w", bridge.ErrKindMismatch)
	errMessageOffered  = fmt.Errorf("a message is offered: %w", bridge.ErrKindMismatch)
)

// Receive takes one message into buf and returns its length. With ErrTooLarge
// the message is longer than buf and stays offered.
func (c *channel) Receive(ctx context.Context, buf []byte) (int, error) {
	h := &c.recv
	if err := h.enter(ctx); err != nil {
		return 0, h.refused(&h.direct, err)
	}
	start := h.sampler.Start(0)
	r := stamp.Of(ctx)
	r.Lap(stamp.Marshal)
	h.measure(r)
	n, err := 0, h.claim(ctx)
	r.Offered()
	if err == nil {
		n, err = h.receive(buf)
	}
	r.Posted()
	h.over()
	h.direct.Note(n, err, start)
	h.unlock()
	return n, err
}

// enter takes the d2h half for a receiver; there can be only one.
func (h *receiver) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &bridge.WithdrawnError{Cause: err}
	}
	if h.queue.try() {
		h.came()
		return nil
	}
	if h.shut.Load()&shutHere != 0 {
		return h.err()
	}
	return errReceiving
}

// claim waits for an offer and holds it. Must hold queue.
func (h *receiver) claim(ctx context.Context) error {
	if h.ch.relay {
		return h.claimOfHost(ctx)
	}
	return h.claimOffer(ctx)
}

// claimOffer is claim; with an error another host's offer may be held. Must hold queue.
func (h *receiver) claimOffer(ctx context.Context) error {
	for {
		shut := h.shut.Load() // before the state: an offer precedes the peer's close
		if shut&shutHere != 0 {
			return h.err()
		}
		if h.offered() {
			if err := h.mailbox.ep.err(); err != nil {
				return err // the fence has not reached this half yet
			}
			if h.hold() {
				return nil
			}
			continue // the device took it back
		}
		if shut&shutPeer != 0 {
			return h.err()
		}
		if h.spinFor(events) {
			continue
		}
		if h.await(ctx.Done(), nil, events, shutAny) {
			return &bridge.WithdrawnError{Cause: ctx.Err()}
		}
	}
}

// release leaves a held offer where it is, unless the device asked for it
// back meanwhile. Must hold queue.
func (h *receiver) release() {
	if e, _ := h.act(proto.Release); e == proto.EventRecalled {
		id := h.id()
		h.act(proto.PutWithdrawn)
		_ = h.putNote(wire.TypeWithdrawn, id) // fails only when the device is lost
	}
}

// refuse answers the held offer of an empty transfer with an error. Must hold
// queue.
func (h *receiver) refuse() {
	id := h.id()
	h.act(proto.PutRefuse)
	var s wire.Slot
	*s.Ack() = wire.Ack{Transaction: id, State: wire.StateFailed, Status: abi.ErrAborted, Direction: uint32(abi.D2H)}
	_ = h.putRecord(wire.TypeError, &s) // fails only when the device is lost
}

// accept answers the held message: its process may continue. Must hold queue.
func (h *receiver) accept(n int) error {
	id := h.id()
	h.act(proto.PutAccept)
	var s wire.Slot
	*s.Ack() = wire.Ack{Transaction: id, Processed: uint64(n), State: wire.StateConsumed, Direction: uint32(abi.D2H)}
	return h.putRecord(wire.TypeAck, &s)
}

// message returns the held offer if it is a message, else leaves it where it
// is. Must hold queue.
func (h *receiver) message() ([]byte, error) {
	hd := wire.Header(h.slot.Header)
	if hd.Type() != wire.TypeDirect {
		h.release()
		return nil, errTransferOffered
	}
	return h.slot.Bytes()[:hd.Length()], nil
}

// receive takes the held offer into buf. Must hold queue.
func (h *receiver) receive(buf []byte) (int, error) {
	msg, err := h.message()
	if err != nil {
		return 0, err
	}
	if len(msg) > len(buf) {
		h.release()
		return 0, tooLarge(len(msg), uint64(len(buf)))
	}
	n := copy(buf, msg)
	if err := h.accept(n); err != nil {
		return 0, err
	}
	return n, nil
}

// ReceiveFunc is an extended rendezvous: fn works on the message in place, and
// the device's process is released when fn returns nil. With an error from fn,
// or a panic in it, the message stays offered.
func (c *channel) ReceiveFunc(ctx context.Context, fn func(msg []byte) error) error {
	h := &c.recv
	if err := h.enter(ctx); err != nil {
		return h.refused(&h.direct, err)
	}
	defer h.unlock()
	start := h.sampler.Start(0)
	r := stamp.Of(ctx)
	r.Lap(stamp.Marshal)
	h.measure(r)
	defer h.over()
	n, err := 0, h.claim(ctx)
	r.Offered()
	if err == nil {
		n, err = h.receiveFunc(fn)
	}
	r.Posted()
	h.direct.Note(n, err, start)
	return err
}

// receiveFunc lets fn work on the held offer. Must hold queue.
func (h *receiver) receiveFunc(fn func(msg []byte) error) (int, error) {
	msg, err := h.message()
	if err != nil {
		return 0, err
	}
	taken := false
	defer func() {
		if !taken {
			h.release()
		}
	}()
	if err := fn(msg); err != nil {
		return 0, err
	}
	h.record.Load().Lap(stamp.Marshal)
	taken = true
	return len(msg), h.accept(len(msg))
}

// TryReceive takes a message only if one is offered now.
func (c *channel) TryReceive(buf []byte) (n int, ok bool, err error) {
	h := &c.recv
	if err := h.enter(background); err != nil {
		return 0, false, h.refused(&h.direct, err)
	}
	start := h.sampler.Start(0)
	if ok, err = h.claimNow(); ok {
		n, err = h.receive(buf)
	}
	if ok || err != nil {
		h.direct.Note(n, err, start)
	}
	h.unlock()
	return n, ok && err == nil, err
}

// claimNow holds what is offered now; false without an error if nothing is.
// Must hold queue.
func (h *receiver) claimNow() (bool, error) {
	if !h.offered() {
		h.expect()
		h.mailbox.poll()
		h.unexpect()
	}
	if h.shut.Load() == 0 && !h.offered() {
		return false, nil
	}
	err := h.claim(expired)
	if err != nil && h.shut.Load() == 0 { // the device took its offer back
		return false, nil
	}
	return err == nil, err
}

// TryReceiveInd takes a transfer of exactly len(data) bytes only if one is
// offered now; it then runs to its end, as ReceiveInd.
func (c *channel) TryReceiveInd(ctx context.Context, data []byte) (bool, error) {
	h := &c.recv
	if err := h.enter(ctx); err != nil {
		return false, h.refused(&h.indirect, err)
	}
	start := meter.Now()
	ok, err := h.claimNow()
	if ok {
		err = h.fits(uint64(len(data)))
	}
	if ok && err == nil {
		err = h.takeInd(ctx, data)
	}
	if ok || err != nil {
		h.indirect.Note(len(data), err, start)
	}
	h.unlock()
	return ok && err == nil, err
}

// TryNext returns what the device offers now without taking it; false if
// nothing is offered.
func (c *channel) TryNext() (offer bridge.Offer, ok bool, err error) {
	h := &c.recv
	if err := h.enter(background); err != nil {
		return bridge.Offer{}, false, err
	}
	defer h.unlock()
	if ok, err = h.claimNow(); ok {
		offer = h.held()
		h.release()
	}
	return offer, ok, err
}

// expired is a context that has ended: a claim with it does not wait.
var expired = func() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}()

// Next waits for the device's next offer and returns it without taking it.
func (c *channel) Next(ctx context.Context) (bridge.Offer, error) {
	h := &c.recv
	if err := h.enter(ctx); err != nil {
		return bridge.Offer{}, err
	}
	defer h.unlock()
	if err := h.claim(ctx); err != nil {
		return bridge.Offer{}, err
	}
	offer := h.held()
	h.release()
	return offer, nil
}

// held describes the held offer. Must hold queue.
func (h *receiver) held() bridge.Offer {
	hd := wire.Header(h.slot.Header)
	if hd.Type() == wire.TypeIndBegin {
		return bridge.Offer{Indirect: true, Size: h.slot.Begin().Size}
	}
	return bridge.Offer{Size: uint64(hd.Length())}
}

// ReceiveInd takes a transfer of exactly len(data) bytes.
func (c *channel) ReceiveInd(ctx context.Context, data []byte) error {
	h := &c.recv
	if err := h.enter(ctx); err != nil {
		return h.refused(&h.indirect, err)
	}
	start := meter.Now()
	r := stamp.Of(ctx)
	r.Lap(stamp.Marshal)
	h.measure(r)
	err := h.receiveInd(ctx, data)
	h.indirect.Note(len(data), err, start)
	h.over()
	h.unlock()
	return err
}

// ReceiveIndFunc is ReceiveInd as an extended rendezvous, into memory that place finds once the
// transfer is offered. When the bytes have arrived fn works on them, and nil from fn commits the
// transfer. With an error from place, or a panic in it, the transfer stays offered; one from fn
// aborts it.
func (c *channel) ReceiveIndFunc(ctx context.Context, size uint64, place func() ([]byte, error), fn func(data []byte) error) error {
	h := &c.recv
	if err := h.enter(ctx); err != nil {
		return h.refused(&h.indirect, err)
	}
	defer h.unlock()
	start := meter.Now()
	data, err := h.placed(ctx, size, place)
	if err == nil {
		err = h.moveFunc(ctx, data)
	}
	if err == nil {
		err = h.finFunc(func() error { return fn(data) })
	}
	h.indirect.Note(int(size), err, start)
	return err
}

// placed waits for an offer of size bytes, holds it and returns the memory for
// it. Must hold queue.
func (h *receiver) placed(ctx context.Context, size uint64, place func() ([]byte, error)) (data []byte, err error) {
	if err := h.claimInd(ctx, size); err != nil {
		return nil, err
	}
	held := false
	defer func() {
		if !held {
			h.release()
		}
	}()
	data, err = place()
	if err == nil && uint64(len(data)) != size {
		err = fmt.Errorf("%d bytes of memory for a transfer of %d: %w", len(data), size, bridge.ErrInvalid)
	}
	held = err == nil
	return data, err
}

// receiveInd takes the device's transfer into data. Must hold queue.
func (h *receiver) receiveInd(ctx context.Context, data []byte) error {
	if h.mayPost(len(data)) {
		if err := h.post(ctx, data); err != errElse {
			return err
		}
	}
	return h.takeOffered(ctx, data)
}

// takeOffered waits for an offer and takes it into data. Must hold queue.
func (h *receiver) takeOffered(ctx context.Context, data []byte) error {
	err := h.claimInd(ctx, uint64(len(data)))
	if err == nil {
		err = h.takeInd(ctx, data)
	}
	return err
}

// claimInd waits for an offer and holds it if it is a transfer of size bytes.
// Must hold queue.
func (h *receiver) claimInd(ctx context.Context, size uint64) error {
	err := h.claim(ctx)
	h.record.Load().Offered()
	if err != nil {
		return err
	}
	return h.fits(size)
}

// fits leaves the held offer where it is unless it is a transfer of size bytes.
// Must hold queue.
func (h *receiver) fits(size uint64) error {
	err := h.fitting(size)
	if err != nil {
		h.release()
	}
	return err
}

// takeInd moves the held transfer into data, which has its size, and commits it. Must hold queue.
func (h *receiver) takeInd(ctx context.Context, data []byte) error {
	if len(data) == 0 {
		return h.fin()
	}
	x, err := h.account(data)
	if err != nil {
		return err
	}
	if x.eager() {
		if err = h.giveEager(x); err == nil {
			return h.endEager(ctx, x)
		}
		x.stop()
		return err
	}
	err = h.move(ctx, x)
	if err == nil {
		err = h.fin()
	}
	return err
}

// moveFunc moves the held transfer into data, which has its size, all but the commit. Must hold queue.
func (h *receiver) moveFunc(ctx context.Context, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	x, err := h.account(data)
	if err == nil {
		err = h.move(ctx, x)
	}
	return err
}

// account opens the account of the held transfer, or leaves it where it is. Must hold queue.
func (h *receiver) account(data []byte) (*transfer, error) {
	x := h.transfer()
	x.id = h.id()
	err := x.start(data, true)
	if err != nil {
		h.release()
	}
	h.record.Load().Lap(stamp.Pin)
	return x, err
}

// move moves the held transfer list by list. Must hold queue.
func (h *receiver) move(ctx context.Context, x *transfer) error {
	h.act(proto.PutTransfer)
	r := h.record.Load()
	r.Sent()
	err := x.run(ctx)
	r.Answered()
	if err == nil {
		err = x.verified()
	}
	x.stop()
	if err != nil {
		h.settle()
	}
	return err
}

// fitting returns nil if the held offer is a transfer of n bytes. Must hold
// queue.
func (h *receiver) fitting(n uint64) error {
	switch o := h.held(); {
	case !o.Indirect:
		return errMessageOffered
	case o.Size != n:
		return &bridge.SizeError{Host: n, Device: o.Size}
	default:
		return nil
	}
}

// settle takes note of how the transfer of the d2h half ended. The device's next offer may have
// arrived already: that stays. Must hold queue.
func (h *receiver) settle() { h.seen(eventOf(h.word.Load())) }

// fin commits the transfer. Must hold queue.
func (h *receiver) fin() error {
	id := h.id()
	if _, ok := h.act(proto.PutFin); !ok {
		h.act(proto.PutAccept) // an empty transfer was never more than an offer
	}
	err := h.putNote(wire.TypeFin, id)
	h.record.Load().Posted()
	return err
}

// finFunc commits the transfer if fn agrees. Must hold queue.
func (h *receiver) finFunc(fn func() error) (err error) {
	agreed := false
	defer func() {
		if !agreed {
			h.renege()
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	agreed = true
	return h.fin()
}

// renege aborts the transfer whose bytes have all arrived. An empty one has
// no lists yet, so it is refused like an offer. Must hold queue.
func (h *receiver) renege() {
	if h.offered() {
		h.refuse()
		return
	}
	_ = h.xfer.abort(nil)
	h.settle()
}
