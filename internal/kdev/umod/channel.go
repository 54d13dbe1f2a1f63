package umod

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// channel is a channel of a file.
type channel struct {
	file   *File
	ch     bridge.Channel
	epoch  uint32
	halves [2]half
	gone   chan struct{} // closed when the handle is
	once   sync.Once
	lost   bool                       // a reset ended its epoch; guarded by file.mu
	closed uint16                     // halves; guarded by file.mu
	kept   map[uint64]chan<- struct{} // turns of ARMs, by id; guarded by file.mu
}

// half runs the operations of a half one after the other.
type half struct {
	channel *channel
	wake    chan struct{}

	mu     sync.Mutex   // guards what follows
	queue  []*operation // the first one runs
	runs   bool         // the worker does
	held   bool         // the first one is held: its completion is out
	decide chan *operation
}

func newChannel(f *File, ch bridge.Channel, epoch uint32) *channel {
	c := &channel{file: f, ch: ch, epoch: epoch, gone: make(chan struct{}), kept: make(map[uint64]chan<- struct{})}
	for i := range c.halves {
		h := &c.halves[i]
		h.channel, h.wake, h.decide = c, make(chan struct{}, 1), make(chan *operation, 1)
	}
	return c
}

// end stops the workers when they are idle.
func (c *channel) end() { c.once.Do(func() { close(c.gone) }) }

// accept starts an operation that is valid.
func (c *channel) accept(o *operation) {
	switch o.raw.Opcode {
	case uapi.OpClose:
		c.file.work.Go(func() { c.close(o) })
	case uapi.OpArm:
		c.arm(o)
	case uapi.OpAccept, uapi.OpRefuse:
		if o.raw.Flags == uapi.H2D {
			c.disarm(o)
			return
		}
		c.halves[abi.D2H].end(o)
	default:
		c.runs(o.raw.Opcode).add(o)
	}
}

// runs returns the half that queues an operation, nil if none does.
func (c *channel) runs(opcode uint16) *half {
	switch opcode {
	case uapi.OpSend, uapi.OpSendInd, uapi.OpAsk:
		return &c.halves[abi.H2D]
	case uapi.OpReceive, uapi.OpReceiveInd, uapi.OpNext:
		return &c.halves[abi.D2H]
	}
	return nil
}

func (c *channel) close(o *operation) {
	if o.raw.Flags&uapi.H2D != 0 {
		_ = c.ch.CloseSend()
	}
	if o.raw.Flags&uapi.D2H != 0 {
		_ = c.ch.CloseReceive()
	}
	f := c.file
	f.mu.Lock()
	c.closed |= o.raw.Flags
	if c.closed == uapi.H2D|uapi.D2H && f.channels[o.raw.Channel] == c {
		delete(f.channels, o.raw.Channel)
		c.end()
	}
	f.mu.Unlock()
	f.complete(o, uapi.Completion{})
}

// disarm gives back the turn of an ARM that was held.
func (c *channel) disarm(o *operation) {
	f := c.file
	f.mu.Lock()
	wake := c.kept[o.raw.Operation]
	delete(c.kept, o.raw.Operation)
	f.mu.Unlock()
	if wake != nil {
		c.ch.Disarm(abi.H2D, wake)
	}
	f.complete(o, uapi.Completion{})
}

// spend returns the turn that an operation uses: an ARM got it.
func (c *channel) spend(o *operation) chan<- struct{} {
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	if o.raw.Flags&uapi.Hold != 0 {
		for arm, wake := range c.kept { // there is one
			delete(c.kept, arm)
			return wake
		}
	}
	return nil
}

// arm completes when the half may be ready.
func (c *channel) arm(o *operation) {
	direction := abi.H2D
	if o.raw.Flags == uapi.D2H {
		direction = abi.D2H
	}
	hold := o.raw.Flags&uapi.Hold != 0
	if direction == abi.H2D {
		c.halves[abi.H2D].settle()
	}
	wake := make(chan struct{}, 1)
	if err := c.ch.Arm(direction, wake); err != nil {
		c.file.complete(o, outcome(uapi.Completion{}, o, err))
		return
	}
	c.file.work.Go(func() {
		done := uapi.Completion{}
		select {
		case <-wake:
			if hold {
				done.Flags = uapi.Held
				c.file.mu.Lock()
				c.kept[o.id] = wake
				c.file.mu.Unlock()
			} else {
				c.ch.Disarm(direction, wake) // the client decides whether it tries
			}
		case <-o.Done():
			c.ch.Disarm(direction, wake)
			done.Status = uint32(abi.ErrWithdrawn)
		}
		c.file.complete(o, done)
	})
}

// add queues an operation. Receivers do not queue, and neither do sends with
// NOWAIT, which may have a turn that is kept before those in the queue.
func (h *half) add(o *operation) {
	receives := h == &h.channel.halves[abi.D2H]
	if !receives && o.raw.Flags&uapi.Nowait != 0 {
		h.channel.file.work.Go(func() { h.channel.file.complete(h.run(o)) })
		return
	}
	h.mu.Lock()
	if len(h.queue) > 0 && receives {
		h.mu.Unlock()
		h.channel.file.complete(o, uapi.Completion{Status: uint32(abi.ErrBusy)})
		return
	}
	h.queue = append(h.queue, o)
	if !h.runs {
		h.runs = true
		h.channel.file.work.Go(h.work)
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// work runs what is queued until the channel or the file is gone.
func (h *half) work() {
	for {
		select {
		case <-h.wake:
		case <-h.channel.gone:
			if h.first() == nil {
				h.mu.Lock()
				h.runs = len(h.queue) > 0
				over := !h.runs
				h.mu.Unlock()
				if over {
					return
				}
			}
		case <-h.channel.file.ending:
			return
		}
		for o := h.first(); o != nil; o = h.first() {
			o, c := h.run(o)
			h.pop()
			if o != nil {
				h.channel.file.complete(o, c)
			}
		}
	}
}

// settle returns when the operation that was submitted first waits, or is over: its worker may not
// have run so far, and an arming caller has a place behind it.
func (h *half) settle() {
	for h.first() != nil && h.channel.file.module.Device().Stats().Blocked == 0 {
		select {
		case <-h.channel.file.ending:
			return
		case <-time.After(50 * time.Microsecond):
		}
	}
}

// pop takes the first one out of the queue. The last one leaves its place to the next.
func (h *half) pop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue[0] = nil
	if len(h.queue) == 1 {
		h.queue = h.queue[:0]
	} else {
		h.queue = h.queue[1:]
	}
}

// sweep takes the cancelled operations out of the queue that do not run yet, and adds them
// to a list.
func (h *half) sweep(to []*operation) []*operation {
	if h == nil {
		return to
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.queue[:min(len(h.queue), 1)]
	for _, o := range h.queue[len(kept):] {
		if o.Err() != nil {
			to = append(to, o)
		} else {
			kept = append(kept, o)
		}
	}
	clear(h.queue[len(kept):])
	h.queue = kept
	return to
}

func (h *half) first() *operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return nil
	}
	return h.queue[0]
}

// run makes one operation and returns it, or the one that ended its hold, with
// its completion.
func (h *half) run(o *operation) (*operation, uapi.Completion) {
	if o.raw.Flags&uapi.Hold != 0 && o.raw.Flags&uapi.Nowait == 0 {
		return h.runHeld(o)
	}
	transfer := o.raw.Opcode == uapi.OpSendInd || o.raw.Opcode == uapi.OpReceiveInd
	var before bridge.ChannelStats
	if transfer {
		before = h.channel.ch.Stats()
	}
	c := &o.out
	*c = uapi.Completion{}
	var err error
	switch o.raw.Opcode {
	case uapi.OpSend:
		err = h.send(o)
	case uapi.OpAsk:
		err = h.ask(o)
	case uapi.OpSendInd:
		err = h.sendInd(o)
	case uapi.OpNext:
		var offer bridge.Offer
		offer, err = h.next(o)
		c.Length = offer.Size
		if offer.Indirect {
			c.Flags |= uapi.Indirect
		}
	case uapi.OpReceive:
		err = h.receive(o)
	case uapi.OpReceiveInd:
		err = h.receiveInd(o)
		c.Length = o.raw.Length
	}
	if transfer {
		moved := h.lists(before)
		c.Lists, c.Repeated = moved.Lists, moved.Repeated
	}
	return o, outcome(*c, o, err)
}

// runHeld is run for a receive that is held.
func (h *half) runHeld(o *operation) (*operation, uapi.Completion) {
	ch := h.channel.ch
	if o.raw.Opcode == uapi.OpReceive {
		return h.hold(o, func(held func(uapi.Completion) error) error {
			return ch.ReceiveFunc(o.in(o), func(msg []byte) error {
				m := uapi.Completion{Length: uint64(len(msg))}
				copy(m.Payload[:], msg)
				return held(m)
			})
		})
	}
	before := ch.Stats()
	return h.hold(o, func(held func(uapi.Completion) error) error {
		data := o.data()
		return ch.ReceiveIndFunc(o.in(o), uint64(len(data)), func() ([]byte, error) { return data, nil },
			func([]byte) error { return held(h.lists(before)) })
	})
}

// lists counts what a transfer of this half sent. One of the other half that
// moves at the same time counts too: sim has one counter for both.
func (h *half) lists(before bridge.ChannelStats) uapi.Completion {
	now := h.channel.ch.Stats()
	return uapi.Completion{Lists: uint32(now.Lists - before.Lists), Repeated: uint32(now.Repeated - before.Repeated)}
}

func (h *half) send(o *operation) error {
	msg := o.raw.Payload[:o.raw.Length]
	if o.raw.Flags&uapi.Nowait == 0 {
		return h.channel.ch.Send(o.in(o), msg)
	}
	ok, err := h.channel.ch.TrySend(msg, h.channel.spend(o))
	o.tried(ok, err)
	return err
}

// ask gives a message as a question.
func (h *half) ask(o *operation) error {
	caller, is := h.channel.ch.(bridge.Caller)
	if !is {
		return h.send(o)
	}
	msg, ok := o.raw.Payload[:o.raw.Length], true
	var a bridge.Answer
	var err error
	if o.raw.Flags&uapi.Nowait == 0 {
		a, err = caller.Call(o, msg, o.out.Payload[:])
	} else {
		a, ok, err = caller.TryCall(o, msg, o.out.Payload[:], h.channel.spend(o))
		o.tried(ok, err)
	}
	var unanswered *bridge.UnansweredError
	switch {
	case errors.As(err, &unanswered) && unanswered.Late: // the target has the message
		return nil
	case unanswered != nil:
		err = unanswered.Cause
		o.out.Flags |= uapi.Taken
	case err == nil && ok && !a.Message:
		o.out.Flags |= uapi.Taken
		o.out.Length = uint64(a.Size)
	}
	return err
}

// tried notes what an operation with NOWAIT did.
func (o *operation) tried(ok bool, err error) {
	if !ok && err == nil {
		o.out.Status, o.out.Flags = uint32(abi.ErrWithdrawn), uapi.NotNow
	}
}

func (h *half) next(o *operation) (bridge.Offer, error) {
	if o.raw.Flags&uapi.Nowait == 0 {
		return h.channel.ch.Next(o)
	}
	offer, ok, err := h.channel.ch.TryNext()
	o.tried(ok, err)
	return offer, err
}

func (h *half) receiveInd(o *operation) error {
	if o.raw.Flags&uapi.Nowait == 0 {
		return h.channel.ch.ReceiveInd(o.in(o), o.data())
	}
	ok, err := h.channel.ch.TryReceiveInd(o.in(o), o.data())
	o.tried(ok, err)
	return err
}

func (h *half) sendInd(o *operation) error {
	if o.raw.Flags&uapi.Nowait != 0 {
		ok, err := h.channel.ch.TrySendInd(o.in(o), o.data(), h.channel.spend(o))
		o.tried(ok, err)
		return err
	}
	if o.raw.TimeoutNS == 0 {
		return h.channel.ch.SendInd(o.in(o), o.data())
	}
	ctx, cancel := context.WithTimeout(o, time.Duration(o.raw.TimeoutNS))
	defer cancel()
	return h.channel.ch.SendInd(o.in(ctx), o.data())
}

func (h *half) receive(o *operation) (err error) {
	n, ok := 0, true
	buf := o.out.Payload[:o.raw.Length]
	if o.raw.Flags&uapi.Nowait == 0 {
		n, err = h.channel.ch.Receive(o.in(o), buf)
	} else {
		n, ok, err = h.channel.ch.TryReceive(buf)
		o.tried(ok, err)
	}
	o.out.Length = uint64(n)
	return err
}

// errRefused is REFUSE.
var errRefused = errors.New("refused")

// hold runs a receive whose commit is left to ACCEPT or REFUSE: f calls held
// with the first completion.
func (h *half) hold(o *operation, f func(held func(uapi.Completion) error) error) (*operation, uapi.Completion) {
	file := h.channel.file
	file.mu.Lock()
	lost := file.lost
	file.mu.Unlock()
	end := o
	err := f(func(c uapi.Completion) error {
		h.mu.Lock()
		h.held = true
		h.mu.Unlock()
		c.UserData, c.Opcode, c.Flags, c.Channel = o.raw.UserData, o.raw.Opcode, uapi.Held, o.raw.Channel
		file.post(o.record(c))
		var err error
		select {
		case end = <-h.decide:
			if end.raw.Opcode == uapi.OpRefuse {
				err = errRefused
			}
		case <-lost:
			err, end = bridge.ErrDeviceLost, h.tooLate()
		case <-file.ending:
			err, end = bridge.ErrClosed, h.tooLate()
		}
		return err
	})
	if end != o { // the first completion is out
		file.land(o)
	}
	if errors.Is(err, errRefused) {
		err = nil
	}
	if end == nil {
		return nil, uapi.Completion{}
	}
	return end, outcome(uapi.Completion{}, end, err)
}

// tooLate ends a hold and returns what had come to end it.
func (h *half) tooLate() *operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = false
	select {
	case o := <-h.decide:
		return o
	default:
		return nil
	}
}

// end gives ACCEPT or REFUSE to what is held.
func (h *half) end(o *operation) {
	h.mu.Lock()
	held := h.held
	h.held = false
	if held {
		h.decide <- o
	}
	h.mu.Unlock()
	if !held {
		h.channel.file.complete(o, uapi.Completion{Status: uint32(h.channel.notHeld())})
	}
}

// notHeld returns why there is nothing to end.
func (c *channel) notHeld() abi.Status {
	c.file.mu.Lock()
	defer c.file.mu.Unlock()
	if c.lost {
		return abi.ErrReset
	}
	return abi.ErrInvalid
}
