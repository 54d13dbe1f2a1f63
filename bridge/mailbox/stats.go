package mailbox

import (
	"sort"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// meterShards is how many channels may end a transfer at once without meeting
// at a counter.
const meterShards = 8

// meters measure the calls of a device, over all its epochs. They are sharded
// by channel; the last shard is for the control channel alone and never shown.
type meters [meterShards + 1][2]struct{ direct, indirect meter.Path }

// of returns what measures a half.
func (m *meters) of(h *half) (direct, indirect *meter.Path) {
	shard := &m[h.ch.id%meterShards]
	if h.ch.id == abi.TargetControl {
		shard = &m[meterShards]
	}
	return &shard[h.dir].direct, &shard[h.dir].indirect
}

// profile adds the shards up.
func (m *meters) profile() *bridge.Profile {
	p := new(bridge.Profile)
	for d := range abi.Direction(2) {
		for i := range meterShards {
			m[i][d].direct.AddTo(p.Direct.Of(d))
			m[i][d].indirect.AddTo(p.Indirect.Of(d))
		}
		p.Direct.Of(d).Every, p.Indirect.Of(d).Every = meter.Every, 1
	}
	return p
}

// Stats returns counters since Open.
func (d *device) Stats() bridge.Stats {
	e := d.cur.Load()
	s := d.sum()
	s.Blocked = int(d.blocked.Load())
	s.Wakeups = d.wakeups.Load()
	s.Spurious = d.spurious.Load()
	s.Doorbells = d.doorbells.Load()
	s.Full = d.full.Load()
	s.Dropped = d.dropped.Load()
	s.Faults = d.faults.Load()
	s.Resets = d.resets.Load()
	s.LogDropped = d.log.Dropped()
	d.regions.AddTo(&s)
	s.Age = e.watch.age()
	s.Mailboxes = e.watch.mailboxes()
	s.Profile = d.meters.profile()
	return s
}

// sum adds up the channels that are open and those that were.
func (d *device) sum() bridge.Stats {
	d.past.Lock()
	defer d.past.Unlock()
	s := bridge.Stats{ChannelStats: d.retired}
	for _, c := range d.cur.Load().table.list() {
		if c.id != abi.TargetControl {
			s.ChannelStats.Add(c.Stats())
			s.Channels++
		}
	}
	return s
}

// retire takes a channel out of its epoch and keeps its counts.
func (d *device) retire(c *channel) {
	d.past.Lock()
	defer d.past.Unlock()
	if c.ep.table.remove(c) && c.id != abi.TargetControl {
		d.retired.Add(c.Stats())
	}
}

// Stats returns counters since Subscribe.
func (c *channel) Stats() bridge.ChannelStats {
	var s bridge.ChannelStats
	for d := range abi.Direction(2) {
		h := c.half(uint32(d))
		*s.Direct.Of(d), *s.Indirect.Of(d) = h.direct.Stats(), h.indirect.Stats()
		s.Lists += h.lists.Load()
		s.Repeated += h.repeated.Load()
		s.Registered += h.registered.Load()
		s.Unaligned += h.unaligned.Load()
		s.Corrupt += h.corrupt.Load()
		s.Sleeps += h.parked.Load()
		*s.Waiting.Of(d) = int(h.waiting.Load())
		*s.InFlight.Of(d) = int(h.flying.Load())
		*s.Transfers.Of(d) = h.transfers()
	}
	return s
}

// Delivered returns the counter of a half's messages, or of its transfers.
func (c *channel) Delivered(d abi.Direction, transfers bool) *atomic.Uint64 {
	h := c.half(uint32(d))
	if transfers {
		return h.indirect.Delivered()
	}
	return h.direct.Delivered()
}

// transfers returns 1 while a transfer is under way, else 0.
func (h *half) transfers() int {
	s := stateOf(h.word.Load())
	if (s == proto.StateMoving || s == proto.StateGiven) && h.shut.Load()&shutDown == 0 {
		return 1
	}
	return 0
}

// Halves describes both halves as they are now.
func (c *channel) Halves() bridge.Both[bridge.Half] {
	return bridge.Both[bridge.Half]{H2D: c.send.snapshot(), D2H: c.recv.snapshot()}
}

// snapshot describes the half as it is now.
func (h *half) snapshot() bridge.Half {
	w, shut := h.word.Load(), h.shut.Load()
	s := bridge.Half{
		State: bridge.HalfIdle, Closed: shut != 0,
		Waiting: int(h.waiting.Load()), Queued: int(h.queued.Load()), Armed: int(h.arms.Load()),
	}
	if state := stateOf(w); state != proto.StateIdle && shut&shutDown == 0 {
		s.State, s.Transaction = halfStates[state], h.at(w).ID
	}
	if at := meter.Instant(h.asleep.Load()); at != 0 {
		s.Slept = at.Elapsed()
	}
	return s
}

// halfStates are the states of the protocol as the contract has them.
var halfStates = [...]bridge.HalfState{
	proto.StateIdle: bridge.HalfIdle, proto.StateOffered: bridge.HalfOffered,
	proto.StateAnswering: bridge.HalfAnswering, proto.StateMoving: bridge.HalfMoving,
	proto.StateComplete: bridge.HalfComplete,
	// The device has the pages: for what it takes, or for what it will give.
	proto.StateGiven: bridge.HalfMoving, proto.StatePosted: bridge.HalfMoving,
	proto.StateCalled: bridge.HalfOffered,
}

// mailboxes describes the rings; nil when the area must not be touched any more.
func (w *watch) mailboxes() []bridge.MailboxStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return nil
	}
	list := make([]bridge.MailboxStats, len(w.ep.mailboxes))
	for i, b := range w.ep.mailboxes {
		list[i] = bridge.MailboxStats{Slots: int(b.mask + 1), Used: bridge.Both[int]{
			H2D: b.used(b.h2d, b.h2dHead),
			D2H: b.used(b.d2h, b.d2hHead),
		}}
	}
	return list
}

// used returns how many slots of a ring its sender may not write. It reads the slots rather than the
// counters, which a lock guards: those from head on bear the phase of their lap as far as the ring
// was written. While messages pass the answer is one of the recent ones.
func (b *mailbox) used(ring []wire.Slot, headWord *uint64) int {
	head := atomic.LoadUint64(headWord)
	return sort.Search(len(ring), func(n int) bool {
		i := head + uint64(n)
		h := wire.Header(atomic.LoadUint64(&ring[i&b.mask].Header))
		return h.Phase() != b.phase(i)
	})
}
