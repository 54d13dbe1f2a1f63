package mailbox

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/region"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// transfer is the state of the transfer a half runs. It is made once and used
// again.
type transfer struct {
	h       *half
	region  *region.Region // holds the buffer while the device may touch it …
	pin     runtime.Pinner // … or this, where it is no region's
	data    []byte         // the buffer, if its bytes pass …
	staged  []byte         // … through this memory of the port …
	filled  uint64         // … where those of so many lists to the device are, …
	taken   uint64         // … or as many that begin there; both owned as id is
	buffer  []byte         // of which a checksum is made, if it is …
	sum     uint32         // … with those of so many bytes …
	summed  uint64         // … in it; both owned as id is
	bad     error          // that of a page of the buffer that could not be copied; likewise
	id      uint64         // owned by the queue's holder
	unready uint64         // nanoseconds that the target may stay unready; 0: for ever
	since   meter.Instant  // when it was begun, if it is ended by another call

	// mu guards what follows while the half is active; before that and once it
	// is done the drains leave it to the queue's holder.
	mu     sync.Mutex
	ledger proto.Ledger
	end    wire.Ack // how it failed, or was aborted
	theirs uint32   // the device's checksum, once all has moved

	clock stallClock // owned by the queue's holder
}

// transfer returns the half's transfer. Must hold queue.
func (h *half) transfer() *transfer {
	if h.xfer == nil {
		h.xfer = &transfer{h: h}
	}
	return h.xfer
}

// start opens the account of a transfer and holds its buffer. Without an error stop must
// follow.
func (x *transfer) start(data []byte, ready bool) error {
	var cut proto.Split
	if len(data) > 0 {
		if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%8 != 0 {
			x.h.unaligned.Add(1)
		}
		address, err := x.hold(data)
		if err != nil {
			return fmt.Errorf("map %d bytes: %w", len(data), err)
		}
		cut = x.h.mailbox.ep.Split(address, uint64(len(data)))
		cut.Sum = x.h.ch.verify.Load()
	}
	if x.paced() || x.staged != nil && x.h.mailbox.ep.Hello.Capabilities&wire.CapRounds != 0 {
		cut.Most = partOf(cut.Size)
	}
	x.ledger = proto.NewLedger(cut, uint64(x.h.mailbox.ep.Hello.Window), ready)
	x.end = wire.Ack{}
	x.filled, x.taken, x.bad = 0, 0, nil
	x.buffer, x.sum, x.summed = data, 0, 0
	x.fill()
	if x.bad != nil {
		x.stop()
	}
	return x.bad
}

// hold keeps the buffer where it is until stop, and returns its bus address. Memory of a
// region is kept already.
func (x *transfer) hold(data []byte) (address uint64, err error) {
	dev := x.h.mailbox.ep.dev
	if x.region, err = dev.regions.Use(data); err != nil {
		return 0, err
	}
	if x.region != nil {
		x.h.registered.Add(1)
		if x.region.Reached() {
			return x.region.At(data), nil
		}
	}
	if dev.stager != nil {
		return x.stage(dev.stager, data)
	}
	x.pin.Pin(unsafe.SliceData(data))
	if address, err = dev.port.Map(data); err != nil {
		x.pin.Unpin()
	}
	return address, err
}

// letGo ends the use of a region, if there is one.
func (x *transfer) letGo() {
	if x.region != nil {
		x.region.Done()
		x.region = nil
	}
}

// stop gives the buffer back: the device does not touch it any more.
func (x *transfer) stop() {
	x.h.flying.Store(0)
	x.buffer = nil
	held := x.region != nil
	if x.staged != nil {
		x.h.mailbox.ep.dev.stager.Unstage(x.staged)
		x.data, x.staged, held = nil, nil, true
	}
	x.letGo()
	if held {
		return
	}
	if cut := x.ledger.Cut; cut.Size > 0 {
		x.h.mailbox.ep.dev.port.Unmap(cut.Address, cut.Size)
	}
	x.pin.Unpin()
}

// SendInd gives len(data) bytes and returns nil once the target holds them
// all. When ctx ends first the transfer is aborted; data is given back, on
// every path, only when the device cannot touch it any more.
func (c *channel) SendInd(ctx context.Context, data []byte) error {
	h := &c.send
	if err := ctx.Err(); err != nil {
		return h.refused(&h.indirect, &bridge.WithdrawnError{Cause: err})
	}
	if limit := c.ep.Hello.MaxTransfer; uint64(len(data)) > limit {
		return tooLarge(len(data), limit)
	}
	r := stamp.Of(ctx)
	r.Lap(stamp.Marshal)
	start := meter.Now()
	if !h.queue.try() {
		if err := h.lock(ctx); err != nil {
			return h.refused(&h.indirect, err)
		}
		r.Lap(stamp.Queue)
	}
	h.measure(r)
	return h.endInd(ctx, data, h.sendInd(ctx, data, timeout(ctx)), start)
}

// endInd repeats a send that the audit asked back, counts it and hands the half on. Must hold
// queue.
func (h *sender) endInd(ctx context.Context, data []byte, err error, start meter.Instant) error {
	for err == errAskedBack {
		h.asked.again()
		err = h.sendInd(ctx, data, timeout(ctx))
	}
	h.asked.over()
	h.indirect.Note(len(data), err, start)
	h.over()
	h.unlock()
	return err
}

// notAtAll is the time-out of an offer whose target waits now or gets nothing,
// in nanoseconds.
const notAtAll = 1

// TrySendInd gives data only if the target waits for it now; the transfer then
// runs to its end, as SendInd. For waiter see TrySend.
func (c *channel) TrySendInd(ctx context.Context, data []byte, waiter chan<- struct{}) (bool, error) {
	h := &c.send
	if limit := c.ep.Hello.MaxTransfer; uint64(len(data)) > limit {
		return false, tooLarge(len(data), limit)
	}
	if err := ctx.Err(); err != nil {
		return false, h.refused(&h.indirect, &bridge.WithdrawnError{Cause: err})
	}
	if c.refusesTries() {
		return false, errTryHost
	}
	if !h.enterTry(waiter) {
		return false, nil
	}
	start := meter.Now()
	err := h.sendInd(ctx, data, notAtAll)
	late := err == errNotReady || err == errAskedBack
	h.tried(late, waiter)
	if !late {
		h.indirect.Note(len(data), err, start)
	}
	h.unlock()
	if late {
		return false, nil
	}
	return err == nil, err
}

// sendInd offers a transfer, to a target that may stay unready for so many
// nanoseconds, and moves it. errAskedBack means that the offer was returned because the
// audit asked. Must hold queue.
func (h *sender) sendInd(ctx context.Context, data []byte, unready uint64) error {
	if h.shut.Load() != 0 {
		return h.err()
	}
	x := h.transfer()
	if err := x.start(data, false); err != nil {
		return err
	}
	x.unready = unready
	h.record.Load().Lap(stamp.Pin)
	var err error
	if x.eager() {
		err = h.offerEager(ctx, x)
	} else {
		err = h.offerLists(ctx, x)
	}
	x.stop()
	return err
}

// offerLists offers a transfer, moves it list by list and commits it. Must hold queue.
func (h *sender) offerLists(ctx context.Context, x *transfer) error {
	err := h.beginInd(ctx, x)
	r := h.record.Load()
	r.Sent()
	if err == nil {
		err = x.run(ctx)
		r.Answered()
	}
	if err == nil {
		err = x.verified()
	}
	if err == nil && stateOf(h.word.Load()) == proto.StateComplete { // else another host took it
		h.act(proto.PutFin)
		err = h.putNote(wire.TypeFin, x.id)
		r.Posted()
	}
	return err
}

// beginInd offers the transfer: IND_BEGIN, and list 0 with it so that the
// device sees both. Must hold queue.
func (h *sender) beginInd(ctx context.Context, x *transfer) error {
	var begin, list wire.Slot
	x.ledger.Sent = min(x.ledger.Lists, 1)
	id, before := h.begin(proto.PutTransfer)
	x.id = id
	*begin.Begin() = wire.Begin{Transaction: id, Size: x.ledger.Cut.Size, TimeoutNS: x.unready}
	hd := h.header(wire.TypeIndBegin, abi.PayloadSize, id)
	var err error
	if x.ledger.Lists == 0 {
		err = h.put(ctx, hd, &begin.Payload, h.mailbox.room(proto.RoomNormal), shutAny)
	} else {
		n := x.ledger.Cut.Fill(0, list.Gather())
		h.lists.Add(1)
		h.flying.Store(1)
		err = h.putBegin(ctx, hd, &begin.Payload, h.header(wire.TypeIndList, n, id), &list.Payload)
	}
	if err != nil {
		h.unbegin(before)
	}
	return err
}

// putBegin puts two messages; while the ring is full it waits. Must hold queue.
func (h *sender) putBegin(ctx context.Context, hd wire.Header, p *[7]uint64, hd2 wire.Header, p2 *[7]uint64) error {
	var wait roomWait
	for round := 0; ; round++ {
		switch h.mailbox.putPair(hd, p, hd2, p2) {
		case putDone:
			return nil
		case putRing:
			h.ring()
			return nil
		case putDead:
			return h.mailbox.ep.err()
		}
		if round == 0 {
			h.mailbox.ep.dev.full.Add(1)
		}
		if err := h.pauseForRoom(ctx, round); err != nil {
			return err
		}
		if wait.stuck(h.mailbox, h.mailbox.ep.stall) {
			return h.mailbox.lost(h.mailbox.ep.stall)
		}
	}
}

// pauseForRoom passes some time while the ring is full. It returns why the call should not wait any more. Must hold queue.
func (h *half) pauseForRoom(ctx context.Context, round int) error {
	h.addWaiting(1)
	h.mailbox.ep.watch.wakeUp()
	h.mailbox.poll()
	pause(round)
	h.addWaiting(-1)
	return h.endsWait(ctx, shutAny)
}

// timeout is how long the target may stay unready; 0 is for ever.
func timeout(ctx context.Context) uint64 {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return uint64(max(notAtAll+1, time.Until(end)))
}

// run moves a transfer until DONE, or until another host took it. On every other end it
// returns why, and the device does not touch the buffer any more. Must hold queue.
func (x *transfer) run(ctx context.Context) error {
	defer x.clock.stop()
	for round := 0; ; round++ {
		full, late := false, false
		if round > 0 || !x.whole() {
			full = x.feed()
		}
		switch {
		case x.bad != nil:
			return x.abort(x.bad)
		case x.fill() || x.take() || x.add():
			x.h.mailbox.poll()
		case x.assist(ctx):
		case x.unready == notAtAll && x.askBack():
			x.h.awaitLook()
		case full:
			_ = x.h.pauseForRoom(ctx, round) // what ends the wait is looked at below
			x.clock.ticks(x.h.mailbox.ep.stall)
			late = x.clock.ticked()
		default:
			late = x.awaitMove(ctx)
		}
		w, shut := x.h.word.Load(), x.h.shut.Load()
		switch e := eventOf(w); {
		case e == proto.EventRetriesExhausted:
			return x.abort(fmt.Errorf("%w: a round was repeated %d times", bridge.ErrDMA, wire.RepeatsMax))
		case e != proto.EventNone && e != proto.EventProgress:
			return x.result(ctx, e)
		case shut&shutDown != 0:
			return x.stopped(x.h.err())
		case shut != 0:
			return x.abort(x.h.err())
		case ctx.Err() != nil:
			return x.abort(&bridge.WithdrawnError{Cause: ctx.Err()})
		case e == proto.EventProgress:
			round, x.clock.idle = 0, 0
			x.h.seen(e)
		case w&askFlag != 0:
			x.askBack()
		case late && x.clock.overdue():
			return x.abort(x.h.stallErr())
		}
	}
}

// awaitMove sleeps until there are events of the transfer; true if ctx ended or a step
// of the stall clock passed first. Must hold queue.
func (x *transfer) awaitMove(ctx context.Context) bool {
	if x.due() {
		return x.h.await(ctx.Done(), x.clock.ticks(x.h.mailbox.ep.stall), events|askFlag, shutAny)
	}
	x.h.waitForTarget(1)
	defer x.h.waitForTarget(-1)
	return x.h.await(ctx.Done(), nil, events|askFlag, shutAny)
}

// whole reports whether the offer brought all lists with it.
func (x *transfer) whole() bool { return x.h.dir == abi.H2D && x.ledger.Lists <= 1 }

// feed sends lists while window and ring have room. True if it was the ring
// that had none: the device may wait for more lists before it acks, so no ack
// need arrive to wake the caller. Must hold queue.
func (x *transfer) feed() (full bool) {
	x.mu.Lock()
	full, asleep := x.feedLocked()
	x.mu.Unlock()
	if asleep {
		x.h.ring()
	}
	return full
}

// feedLocked is feed; asleep asks for a ring. Must hold queue and the transfer's mu.
func (x *transfer) feedLocked() (full, asleep bool) {
	var s wire.Slot
	b := x.h.mailbox
	l := &x.ledger
	k, ok := l.Next()
	if !ok {
		return false, false
	}
	first := l.Sent
	flag := 0
	if x.h.dir == abi.D2H {
		flag = wire.ListD2H
	}
	b.tx.Lock()
	for ok && k < x.filled && !b.tx.dead && b.hasRoomLocked(1, b.room(proto.RoomList)) {
		n := l.Cut.Fill(k, s.Gather())
		hd := x.h.header(wire.TypeIndList, n|flag, x.id)
		if l := b.log.Load(); l != nil {
			l.add(b, false, uint64(hd), &s.Payload)
		}
		b.storeLocked(b.tx.tail, hd, &s.Payload)
		b.tx.tail++
		l.Sent++
		k, ok = l.Next()
	}
	asleep = l.Sent > first && b.shownLocked()
	dead := b.tx.dead
	b.tx.Unlock()
	if l.Sent > first {
		x.h.lists.Add(l.Sent - first)
		x.h.flying.Store(int32(l.Sent - l.Acked))
	}
	return ok && k < x.filled && !dead, asleep
}

const (
	assistFrom   = 64 << 10 // bytes; less is not worth sharing
	assistPolls  = 24       // polls between two looks for DMA to do
	assistYields = 40       // looks without success before giving way
	assistIdle   = 320      // … and before parking, for each assistBytes of the transfer …
	assistBytes  = 256 << 10
	assistMost   = 4 // … but so many
)

// looks is how often a call polls for the end of the transfer before it parks. To be woken takes
// longer than moving some hundred KiB.
func (x *transfer) looks() int {
	return assistIdle * int(min(1+x.ledger.Cut.Size/assistBytes, assistMost))
}

// assist waits for events of the transfer and moves DMA pieces meanwhile, as long
// as there are some; false when it is time to park. Must hold queue.
func (x *transfer) assist(ctx context.Context) bool {
	if x.ledger.Cut.Size < assistFrom {
		return x.h.spinFor(events)
	}
	port, polls := x.h.mailbox.ep.dev.port, min(x.h.spin.full, assistPolls)
	for idle, most := 1, x.looks(); idle < most; idle++ {
		if x.h.pollFor(events, polls) || x.h.shut.Load() != 0 || ctx.Err() != nil {
			return true
		}
		switch {
		case port.Assist():
			idle = 0
		case polls == 0:
			return x.h.mailbox.run() && x.h.pollFor(events, 1)
		case idle%assistYields == 0 && !x.h.mailbox.run():
			port.Yield()
		}
	}
	return false
}

// abort ends the transfer and waits until the device is quiet, or lost. It
// returns cause, with what was moved before. Must hold queue.
func (x *transfer) abort(cause error) error {
	x.mu.Lock()
	_, under := x.h.act(proto.PutAbort)
	x.mu.Unlock()
	if !under && eventOf(x.h.word.Load()) == proto.EventDelivered {
		return nil
	}
	if !under { // what ended it meanwhile does just as well
		return x.stopped(cause)
	}
	err := x.h.putNote(wire.TypeAbort, x.id)
	if err != nil {
		x.h.await(nil, nil, events, shutDown)
	} else if !x.h.escalate(events) {
		err = x.h.err()
	}
	switch w := x.h.word.Load(); {
	case w&events == 0:
		return x.stopped(err)
	case eventOf(w) == proto.EventDelivered:
		return nil
	}
	return x.stopped(cause)
}

// stopped returns err, with the place where the transfer stopped if bytes
// were moved before.
func (x *transfer) stopped(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := &x.ledger
	if l.Processed == 0 || err == nil || err == x.bad {
		return err
	}
	return &bridge.TransferError{
		Processed: l.Processed, Outstanding: l.Cut.Size - l.Processed,
		List: uint32(l.Acked), Entry: x.end.FaultIndex, Err: err,
	}
}

// result returns what the event that ended the transfer means to the caller; nil if
// all has moved. Must hold queue.
func (x *transfer) result(ctx context.Context, e proto.Event) error {
	switch e {
	case proto.EventDone, proto.EventDelivered:
		return nil
	case proto.EventWithdrawn:
		return errAskedBack
	}
	return x.failure(ctx)
}

// failure returns why the transfer ended, as the device's record says. Must hold queue.
func (x *transfer) failure(ctx context.Context) error {
	end, size := &x.end, x.ledger.Cut.Size
	switch end.Status {
	case abi.ErrSize:
		return &bridge.SizeError{Host: size, Device: end.Outstanding}
	case abi.ErrDMA:
		return &bridge.TransferError{
			Processed: end.Processed, Outstanding: size - end.Processed,
			List: end.Lists, Entry: end.FaultIndex, Err: bridge.ErrDMA,
		}
	case abi.ErrTimeout:
		if x.unready == notAtAll {
			return errNotReady
		}
		if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) { // not the device's own
			return &bridge.WithdrawnError{Cause: bridge.ErrTargetTimeout}
		}
	}
	return x.stopped(bridge.Error(end.Status))
}
