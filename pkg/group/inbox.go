package group

import "errors"

// inbox keeps the frames of this step that nobody has taken yet: a queue for
// each source, and the order of their arrival.
type inbox struct {
	slots      []slot
	free       int32   // the first unused slot, -1 none
	head, tail []int32 // by rank, -1 none
	order      []int32 // ranks in the order of their frames
	next       int     // in order
}

type slot struct {
	frame
	next int32
}

const none = -1

func (b *inbox) reset(n int) {
	*b = inbox{free: none, head: make([]int32, n), tail: make([]int32, n)}
	for i := range n {
		b.head[i], b.tail[i] = none, none
	}
}

func (b *inbox) put(f *frame) {
	at := b.free
	if at == none {
		at = int32(len(b.slots))
		b.slots = append(b.slots, slot{})
	} else {
		b.free = b.slots[at].next
	}
	b.slots[at] = slot{*f, none}
	if b.tail[f.From] == none {
		b.head[f.From] = at
	} else {
		b.slots[b.tail[f.From]].next = at
	}
	b.tail[f.From] = at
	b.order = append(b.order, int32(f.From))
}

// take removes the oldest frame of a source.
func (b *inbox) take(from int, f *frame) bool {
	at := b.head[from]
	if at == none {
		return false
	}
	*f = b.slots[at].frame
	if b.head[from] = b.slots[at].next; b.head[from] == none {
		b.tail[from] = none
	}
	b.slots[at] = slot{next: b.free}
	b.free = at
	return true
}

// first returns the source of the oldest frame of all.
func (b *inbox) first() (int, bool) {
	for b.next < len(b.order) {
		if from := int(b.order[b.next]); b.head[from] != none {
			return from, true
		}
		b.next++ // its frame was taken by name
	}
	b.order, b.next = b.order[:0], 0
	return 0, false
}

// find returns the source of the oldest frame of a phase that no older frame of
// the same source precedes.
func (b *inbox) find(tag uint16) (int, bool) {
	if _, some := b.first(); !some {
		return 0, false
	}
	for _, from := range b.order[b.next:] {
		if at := b.head[from]; at != none && b.slots[at].Tag == tag {
			return int(from), true
		}
	}
	return 0, false
}

// pool hands out slices that last until the next call.
type pool[T any] struct {
	chunk []T
	used  int
}

func (p *pool[T]) reset() { p.used = 0 }

// take returns n elements. Their contents are arbitrary.
func (p *pool[T]) take(n int) []T {
	if p.used+n > len(p.chunk) {
		p.chunk = make([]T, max(2*len(p.chunk), n, 512)) // what was handed out stays where it is
		p.used = 0
	}
	p.used += n
	return p.chunk[p.used-n : p.used : p.used]
}

// back takes back what was handed out since used was so much; unless the memory
// has changed since, which is then left to itself.
func (p *pool[T]) back(used, of int) {
	if len(p.chunk) == of {
		p.used = used
	}
}

// bytes takes n bytes that are aligned for any event.
func (g *Group) bytes(n int) []byte { return g.arena.take((n + align - 1) &^ (align - 1))[:n:n] }

// sends are frames that wait for room, in order.
type sends struct {
	queue []pendingSend
	steps int      // how many are part of this step
	full  []uint64 // by rank: the look in which there was no room
	look  uint64
}

type pendingSend struct {
	frameHeader
	to   int
	data []byte
}

func (s *sends) reset(n int) { *s = sends{full: make([]uint64, n)} }

// drop gives up the frames of the step; what controls it stays.
func (s *sends) drop() {
	kept := s.queue[:0]
	for _, p := range s.queue {
		if p.Op >= opControl {
			kept = append(kept, p)
		}
	}
	clear(s.queue[len(kept):])
	s.queue, s.steps = kept, 0
}

// send puts a frame on its way, now or when there is room.
func (g *Group) send(to int, h frameHeader, data []byte) {
	if len(g.sends.queue) == 0 { // else it would overtake
		ok, err := g.link.TrySend(g.member.link[to], h, data)
		if ok || err != nil {
			g.sent(to, h, len(data), err)
			return
		}
	}
	g.sends.queue = append(g.sends.queue, pendingSend{h, to, data})
	if h.Op < opControl {
		g.sends.steps++
	}
}

// sent books a frame that was sent, or never will be.
func (g *Group) sent(to int, h frameHeader, size int, err error) {
	switch {
	case err == nil:
		g.stats.sent(size)
	case h.Op < opControl && !(g.flushing && errors.Is(err, ErrGone)): // an answer, or no data, to a member that has left is no loss
		g.fail(about(err, to))
	}
}

// flushSends sends what there is room for; false if there was none.
func (g *Group) flushSends() bool {
	s := &g.sends
	if len(s.queue) == 0 {
		return false
	}
	s.look++
	kept := s.queue[:0]
	for _, p := range s.queue {
		if s.full[p.to] == s.look {
			kept = append(kept, p)
			continue
		}
		ok, err := g.link.TrySend(g.member.link[p.to], p.frameHeader, p.data)
		if !ok && err == nil {
			s.full[p.to] = s.look
			kept = append(kept, p)
			continue
		}
		g.sent(p.to, p.frameHeader, len(p.data), err)
		if p.Op < opControl {
			s.steps--
		}
	}
	did := len(kept) < len(s.queue)
	clear(s.queue[len(kept):])
	s.queue = kept
	return did
}

// drain returns once all frames are sent, of control as well.
func (g *Group) drain() error {
	for len(g.sends.queue) > 0 {
		if g.progress() {
			continue
		}
		if err := g.await(g.sends.queue[0].to); err != nil {
			return err
		}
	}
	return nil
}
