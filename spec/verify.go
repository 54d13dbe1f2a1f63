package spec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// IllegalError names the first slot of a log that no path of the tables has.
type IllegalError struct {
	Index   int // of the record
	Record  Record
	Before  string // the states that the channel's halves could have had
	Allowed []string
	Why     string
}

// Error describes the slot, the states before it and the rows that would have been allowed.
func (e *IllegalError) Error() string {
	way := "the host put"
	if e.Record.Taken {
		way = "the device put"
	}
	return fmt.Sprintf("slot %d of mailbox %d: %s %v: %s; before: %s; allowed: %s",
		e.Index, e.Record.Mailbox, way, &e.Record.Slot, e.Why, e.Before, strings.Join(e.Allowed, ", "))
}

var errTaken = errors.New("no state of the host lets a device put that")

// verifier follows a log. The channels are independent of each other, but for the control channel,
// whose replies open the others.
type verifier struct {
	log      *Log
	epoch    uint8
	started  bool
	channels map[uint32]*path
	asked    map[uint32]request  // OPEN without a reply, by number of the request
	pending  map[uint32]*path    // by mailbox: the channel whose last slot may not have been looked at
	early    map[uint32][]*early // by channel: slots before the reply that opens it
}

// earlyMax is how many slots of a channel a host keeps until the reply that opens it. One more is a fault.
const earlyMax = 4

// requestsMax is how many requests of channels may be without a reply. A host has one at a time.
const requestsMax = 16

// request is an OPEN that the host put.
type request struct {
	target uint32
	id     uint64 // of its message
}

// early is a slot that arrived before its channel was open.
type early struct {
	index int
	rec   *Record
}

// path is where a channel may be: in each of some states.
type path struct {
	channel uint32
	at      []place
	next    []place // room
}

// place is one such state. waiting is a slot that the host has taken out of the ring, and may not have
// looked at yet.
type place struct {
	model   talk.Model
	waiting *Record
	index   int
	ignored bool // the device's offer, by a call that closes the half and has not put CLOSE
	// Transactions for which WITHDRAW and ABORT were put, by half, and pages posted.
	withdrawn, aborted [2]uint64
	posted             uint64
}

// Verify accepts a log exactly if it is a path of the tables. Else the error is an *IllegalError, or
// [ErrLog] for bounds that no device has.
func Verify(l *Log) error {
	if err := l.check(); err != nil {
		return err
	}
	v := newVerifier(l)
	for i := range l.Records {
		if err := v.take(i, &l.Records[i]); err != nil {
			return err
		}
	}
	return v.end()
}

func newVerifier(l *Log) *verifier {
	return &verifier{
		log: l, channels: map[uint32]*path{}, asked: map[uint32]request{}, pending: map[uint32]*path{},
		early: map[uint32][]*early{},
	}
}

// end has the host look at all that it took.
func (v *verifier) end() error {
	for _, p := range v.pending {
		if err := v.settle(p); err != nil {
			return err
		}
	}
	return nil
}

// begin begins an epoch.
func (v *verifier) begin(epoch uint8) {
	v.epoch, v.started = epoch, true
	clear(v.channels)
	clear(v.asked)
	clear(v.pending)
	clear(v.early)
	v.open(0, 1, 1, 0)
}

// open gives a channel its ids.
func (v *verifier) open(channel uint32, h2d, d2h, generation uint64) *path {
	p := &path{channel: channel, at: make([]place, 1)}
	o := talk.Open{Next: [2]uint64{h2d, d2h}, Generation: generation, Window: v.log.Window, Limit: v.log.Limit, Runs: 1}
	p.at[0].model.Table = proto.Default()
	_ = p.at[0].model.Open(&o) // has no errors
	v.channels[channel] = p
	return p
}

// take follows one record.
func (v *verifier) take(i int, r *Record) error {
	h := wire.Header(r.Slot.Header)
	if !v.started || !r.Taken && int8(h.Epoch()-v.epoch) > 0 {
		v.begin(h.Epoch())
	}
	if r.Taken {
		if err := v.settle(v.pending[r.Mailbox]); err != nil {
			return err
		}
		delete(v.pending, r.Mailbox)
	}
	if h.Epoch() != v.epoch {
		if r.Taken {
			return nil // dropped and counted
		}
		return v.illegal(i, r, nil, fmt.Errorf("epoch %d after %d", h.Epoch(), v.epoch))
	}
	p := v.channels[h.Channel()]
	switch {
	case h.Channel() >= v.log.Channels:
		return v.illegal(i, r, nil, fmt.Errorf("the device has %d channels", v.log.Channels))
	case v.mailbox(h.Channel()) != r.Mailbox:
		return v.illegal(i, r, nil, fmt.Errorf("the channel is of mailbox %d", v.mailbox(h.Channel())))
	case p == nil && r.Taken:
		return v.stranger(i, r)
	case p == nil:
		return v.illegal(i, r, nil, fmt.Errorf("the channel is not open"))
	case r.Taken:
		for k := range p.at {
			p.at[k].waiting, p.at[k].index = r, i
		}
		v.pending[r.Mailbox] = p
		// The device put it before what the host puts from here on, so that the host may look at once.
		p.next = p.next[:0]
		for k := range p.at {
			p.next = looked(p.next, &p.at[k])
		}
		if len(p.next) == 0 {
			return v.illegal(i, r, p, errTaken)
		}
	default:
		if err := v.put(i, r, p); err != nil {
			return err
		}
	}
	if h.Channel() == 0 {
		return v.control(i, r, p)
	}
	return nil
}

// unask forgets the request whose message the device gave back or refused.
func (v *verifier) unask(s *wire.Slot) {
	direction := s.Note().Direction
	if wire.Header(s.Header).Type() == wire.TypeError {
		direction = s.Ack().Direction
	}
	for number, q := range v.asked {
		if direction == uint32(abi.H2D) && q.id == s.Payload[0] {
			delete(v.asked, number)
			delete(v.early, q.target)
		}
	}
}

// mailbox returns the mailbox of a channel.
func (v *verifier) mailbox(channel uint32) uint32 {
	h := wire.Hello{Channels: v.log.Channels, Mailboxes: uint16(v.log.Mailboxes), Islands: uint16(v.log.Islands)}
	return uint32(h.Mailbox(channel))
}

// stranger is a slot of the device for a channel that is not open, or not yet.
func (v *verifier) stranger(i int, r *Record) error {
	h := wire.Header(r.Slot.Header)
	for _, q := range v.asked {
		if q.target == h.Channel() {
			if len(v.early[q.target]) == earlyMax {
				return v.illegal(i, r, nil, fmt.Errorf("more than %d slots before the channel is open", earlyMax))
			}
			v.early[q.target] = append(v.early[q.target], &early{i, r})
			return nil
		}
	}
	l := proto.Layout{Hello: wire.Hello{Channels: abi.ChannelsMax, Mailboxes: 1, Islands: 1}}
	if e, why := l.Stranger(0, &r.Slot); e == proto.EventFault {
		return v.illegal(i, r, nil, fmt.Errorf("%s", why))
	}
	return nil
}

// control follows the requests that open channels.
func (v *verifier) control(i int, r *Record, p *path) error {
	c := r.Slot.Control()
	switch t := wire.Header(r.Slot.Header).Type(); {
	case r.Taken && (t == wire.TypeWithdrawn || t == wire.TypeError):
		v.unask(&r.Slot)
	case t != wire.TypeDirect:
	case c.Op != uint16(wire.ControlOpen):
	case !r.Taken:
		if len(v.asked) == requestsMax {
			return v.illegal(i, r, p, fmt.Errorf("more than %d requests of channels without a reply", requestsMax))
		}
		v.asked[c.Request] = request{uint32(c.A), p.at[0].model.Half(abi.H2D).ID}
	case c.Status == uint16(abi.OK):
		q, ok := v.asked[c.Request]
		if !ok {
			return v.illegal(i, r, v.channels[0], fmt.Errorf("a reply that nobody asked for"))
		}
		p := v.open(q.target, c.A, c.B, c.C)
		for _, e := range v.early[q.target] {
			for k := range p.at {
				p.at[k].waiting, p.at[k].index = e.rec, e.index
			}
			if err := v.settle(p); err != nil {
				return err
			}
		}
		fallthrough
	default:
		delete(v.early, v.asked[c.Request].target)
		delete(v.asked, c.Request)
	}
	return nil
}

// normal returns a slot as conversations have it: of their channel and epoch.
func normal(s *wire.Slot) wire.Slot {
	h := wire.Header(s.Header)
	n := *s
	n.Header = uint64(wire.MakeHeader(h.Type(), h.Length(), talk.Epoch, h.Sequence(), talk.Channel))
	return n
}

// settle has the host look at the slot that waits.
func (v *verifier) settle(p *path) error {
	if p == nil {
		return nil
	}
	p.next = p.next[:0]
	var first *place
	for k := range p.at {
		at := &p.at[k]
		if at.waiting == nil {
			p.next = append(p.next, *at)
			continue
		}
		first = at
		p.next = looked(p.next, at)
	}
	if len(p.next) == 0 {
		return v.illegal(first.index, first.waiting, p, errTaken)
	}
	over := first != nil && first.model.Over() && isOver(&first.waiting.Slot)
	if over && v.channels[p.channel] == p {
		delete(v.channels, p.channel)
	}
	p.at, p.next = p.next, p.at
	p.prune()
	return nil
}

// isOver reports whether a slot is the device's answer to the last close.
func isOver(s *wire.Slot) bool {
	return wire.Header(s.Header).Type() == wire.TypeClose && s.Close().Halves == 1<<abi.H2D|1<<abi.D2H
}

// looked appends where a place is after the host looked at the slot that waits: nowhere, if the device
// may not put that.
func looked(to []place, at *place) []place {
	r := *at.waiting
	slot := normal(&r.Slot)
	d2h := at.model.Half(abi.D2H).Stand
	if at.ignored && isOfOffer(&slot, at.model.Half(abi.D2H).ID) {
		return to // of two at a time, whatever the host does
	}
	next := *at
	next.waiting = nil
	event, _, _ := next.model.Take(&slot) // has no errors
	switch event {
	case proto.EventFault:
		return to
	case proto.EventWithdrawn:
		if slot.Note().Direction == uint32(abi.D2H) {
			next.posted = 0
		}
	}
	to = append(to, next)
	if d2h.Marks()&proto.MarkClosed == 0 && event == proto.EventOffer { // or a call closes the half already
		other := *at
		other.waiting, other.ignored = nil, true
		if _, err := other.model.Do("shut", abi.D2H); err == nil {
			if e, _, _ := other.model.Take(&slot); e != proto.EventFault {
				to = append(to, other)
			}
		}
	}
	if d2h.State() == proto.StateOffered && event == proto.EventRecalled { // or a call looks at the offer
		other := *at
		other.waiting = nil
		if _, err := other.model.Do("hold", abi.D2H); err == nil {
			_, _, _ = other.model.Take(&slot) // the other can, too
			to = append(to, other)
		}
	}
	return to
}

// isOfOffer reports whether a slot is about the device's offer of an id, or another one, and not its
// withdrawal.
func isOfOffer(s *wire.Slot, id uint64) bool {
	switch wire.Header(s.Header).Type() {
	case wire.TypeDirect, wire.TypeIndBegin:
		return true
	case wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted:
		return s.Ack().Direction == uint32(abi.D2H) && s.Ack().Transaction == id
	case wire.TypeOffer:
		return s.Note().Transaction == id+1
	}
	return false
}

// put follows a slot of the host, before or after it looked at the one that waits.
func (v *verifier) put(i int, r *Record, p *path) error {
	p.next = p.next[:0]
	slot := normal(&r.Slot)
	var why error
	var seen []place
	var waits *place
	for k := range p.at {
		at := p.at[k]
		if at.waiting != nil {
			waits = &at
			seen = looked(seen, &at)
		}
		if err := at.puts(&slot); err != nil {
			why = err
			continue
		}
		p.next = append(p.next, at)
	}
	for k := range seen {
		if seen[k].puts(&slot) == nil {
			p.next = append(p.next, seen[k])
		}
	}
	switch {
	case len(p.next) > 0:
	case waits != nil && len(seen) == 0:
		return v.illegal(waits.index, waits.waiting, p, errTaken)
	default:
		return v.illegal(i, r, p, why)
	}
	for k := range p.next {
		at := &p.next[k]
		at.ignored = at.ignored && at.model.Half(abi.D2H).Stand.Marks()&proto.MarkClosed != 0 && !closes(&slot)
	}
	p.at, p.next = p.next, p.at
	p.prune()
	return nil
}

// closes reports whether the host closes its d2h half.
func closes(s *wire.Slot) bool {
	return wire.Header(s.Header).Type() == wire.TypeClose && s.Close().Halves>>abi.D2H&1 != 0
}

// puts has the host put a slot. It may have decided to do so before it looked at slots that it took
// meanwhile: what asks back, ends or answers a transaction may cross its end, once.
func (at *place) puts(s *wire.Slot) error {
	h := wire.Header(s.Header)
	d := abi.Direction(s.Note().Direction & 1)
	once := &at.posted
	switch {
	case h.Type() == wire.TypeWithdraw:
		once = &at.withdrawn[d]
	case h.Type() == wire.TypeAbort:
		once = &at.aborted[d]
	case h.Type() != wire.TypeEager || h.Length()&wire.ListD2H == 0:
		return puts(&at.model, s)
	default:
		d = abi.D2H
	}
	id := s.Payload[0]
	before := at.model
	err := puts(&at.model, s)
	if err != nil {
		at.model = before
		if id != before.Half(d).ID || *once == id {
			return err
		}
	}
	*once = id
	return nil
}

// puts has the host of a model put a slot. A call that answers an offer holds it first.
func puts(m *talk.Model, s *wire.Slot) error {
	h := wire.Header(s.Header)
	d := abi.H2D
	switch h.Type() {
	case wire.TypeIndList, wire.TypeEager:
		d = abi.Direction(h.Length() / wire.ListD2H)
	case wire.TypeAck, wire.TypeError, wire.TypeFin:
		d = abi.D2H
	}
	stand := m.Half(abi.D2H).Stand
	if d == abi.D2H && stand.State() == proto.StateOffered && stand.Marks()&proto.MarkHeld == 0 {
		if _, err := m.Do("hold", abi.D2H); err != nil {
			return err
		}
	}
	_, err := m.Put(s)
	if err == nil && h.Type() == wire.TypeIndList {
		err = m.Cut(d, s)
	}
	return err
}

// prune leaves out places that are there twice.
func (p *path) prune() {
	if len(p.at) == 1 {
		return
	}
	kept := p.at[:0]
	for i := range p.at {
		same := false
		for k := range kept {
			same = same || kept[k].waiting == p.at[i].waiting && kept[k].ignored == p.at[i].ignored &&
				kept[k].withdrawn == p.at[i].withdrawn && kept[k].aborted == p.at[i].aborted && kept[k].posted == p.at[i].posted && kept[k].model.Equal(&p.at[i].model)
		}
		if !same {
			kept = append(kept, p.at[i])
		}
	}
	p.at = kept
}

// illegal describes the slot that no path has.
func (v *verifier) illegal(i int, r *Record, p *path, why error) error {
	e := &IllegalError{Index: i, Record: *r, Before: "the channel is not open", Why: why.Error()}
	if p == nil {
		return e
	}
	var before []string
	for k := range p.at {
		m := &p.at[k].model
		before = append(before, fmt.Sprintf("h2d %v, d2h %v", standText(m.Half(abi.H2D).Stand), standText(m.Half(abi.D2H).Stand)))
		for _, row := range proto.Rows() {
			s := m.Half(row.Direction).Stand
			if s.State() == row.State && s.Marks()&row.With == row.With && s.Marks()&row.Without == 0 &&
				row.Input.ByDevice() == r.Taken && row.Event != proto.EventFault {
				e.Allowed = append(e.Allowed, fmt.Sprintf("%v %v", row.Direction, row.Input))
			}
		}
	}
	e.Before = strings.Join(before, " or ")
	return e
}

func standText(s proto.Stand) string {
	if s.Marks() == 0 {
		return s.State().String()
	}
	return s.State().String() + " (" + s.Marks().String() + ")"
}
