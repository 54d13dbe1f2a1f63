package mailbox

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// mailbox is a ring to the device under tx, a ring from the device
// under rx. Lock order: rx before a transfer's lock before tx.
type mailbox struct {
	ep     *epoch
	index  int
	island int
	line   *wire.IslandLine
	news   uint64 // the mailbox's bit of the island's news; 0: the device wants none
	number uint64 // 1 + its number on the island, as the island has it if it watches
	runner Runner // nil: calls cannot run the island
	runs   *runs  // of the island
	mask   uint64
	shift  int

	log atomic.Pointer[SlotLog] // nil: nobody logs slots

	h2d, d2h         []wire.Slot
	h2dHead, d2hHead *uint64

	_  [64]byte // tx and rx are used by different goroutines
	tx struct {
		sync.Mutex
		tail uint64 // slots put
		head uint64 // slots the device consumed, as last read
		dead bool   // the area must not be touched any more
	}
	_  [64]byte
	rx struct {
		sync.Mutex
		next           *uint64 // header of the next slot, once written with the phase of want
		want           uint64
		head           uint64  // slots taken
		published      uint64  // head as the device knows it
		dead           bool    // nothing may be taken any more
		pendingReplies []reply // that found no room yet
	}
	_ [64]byte
}

// putResult is what became of a put.
type putResult int

const (
	putDone putResult = iota
	putRing           // done, and the island sleeps: ring it
	putFull
	putDead
)

// phase is the bit that marks a slot as written on the lap of index i.
func (b *mailbox) phase(i uint64) uint64 { return (i>>b.shift + 1) & 1 }

// room returns how many slots may be in use after a message of a kind.
func (b *mailbox) room(r proto.Room) uint64 { return r.Slots(b.mask + 1) }

// hasRoomLocked reports whether n more slots fit below limit. It reads the
// device's counter only when the ring seems full. Must hold tx.
func (b *mailbox) hasRoomLocked(n, limit uint64) bool {
	if b.tx.tail-b.tx.head+n <= limit {
		return true
	}
	head := atomic.LoadUint64(b.h2dHead) // SYNC: room
	if head-b.tx.head > b.tx.tail-b.tx.head {
		b.tx.dead = true
		b.ep.fail(fmt.Errorf("%w: mailbox %d: device consumed slot %d of %d", bridge.ErrFault, b.index, head, b.tx.tail))
		return false
	}
	b.tx.head = head
	return b.tx.tail-head+n <= limit
}

// storeLocked writes slot i. The header is written last, as a full fence: shownLocked
// may follow. Must hold tx.
func (b *mailbox) storeLocked(i uint64, h wire.Header, p *[7]uint64) {
	s := &b.h2d[i&b.mask]
	s.Payload = *p
	atomic.StoreUint64(&s.Header, uint64(h.WithPhase(b.phase(i)))) // SYNC: slot, island park, island work, news
}

// reportLocked reports to the island that this mailbox has a slot, unless the island watches it. It
// follows a header store, which is a full fence: an island that takes the bit later finds the slot, also
// if the bit was set before. Must hold tx.
func (b *mailbox) reportLocked() {
	if b.news != 0 && atomic.LoadUint64(&b.line.Watched) != b.number && atomic.LoadUint64(&b.line.News)&b.news == 0 {
		atomic.OrUint64(&b.line.News, b.news) // SYNC: news
	}
}

// shownLocked reports to the island what was put, and returns whether it sleeps; the caller then rings
// it. It follows a header store, which is a full fence. Must hold tx.
func (b *mailbox) shownLocked() (asleep bool) {
	b.reportLocked()
	return atomic.LoadUint64(&b.line.Word) == 1 // SYNC: island park
}

// put publishes one message.
func (b *mailbox) put(h wire.Header, p *[7]uint64, limit uint64) putResult {
	b.tx.Lock()
	if b.tx.dead || !b.hasRoomLocked(1, limit) {
		return b.refuse()
	}
	if l := b.log.Load(); l != nil {
		l.add(b, false, uint64(h), p)
	}
	b.storeLocked(b.tx.tail, h, p)
	b.tx.tail++
	wake := b.shownLocked()
	b.tx.Unlock()
	if wake {
		return putRing
	}
	return putDone
}

// putPair publishes two messages so that the device sees both at once.
func (b *mailbox) putPair(h wire.Header, p *[7]uint64, h2 wire.Header, p2 *[7]uint64) putResult {
	b.tx.Lock()
	if b.tx.dead || !b.hasRoomLocked(2, b.room(proto.RoomNormal)) {
		return b.refuse()
	}
	if l := b.log.Load(); l != nil {
		l.add(b, false, uint64(h), p)
		l.add(b, false, uint64(h2), p2)
	}
	b.storeLocked(b.tx.tail+1, h2, p2)
	b.storeLocked(b.tx.tail, h, p)
	b.tx.tail += 2
	wake := b.shownLocked()
	b.tx.Unlock()
	if wake {
		return putRing
	}
	return putDone
}

// refuse unlocks tx and returns why nothing was put.
func (b *mailbox) refuse() putResult {
	dead := b.tx.dead
	b.tx.Unlock()
	if dead {
		return putDead
	}
	return putFull
}

// ring rings the island of the mailbox, if it still sleeps. It may be called under
// any lock.
func (b *mailbox) ring() {
	if atomic.CompareAndSwapUint64(&b.line.Word, 1, 0) { // SYNC: island park
		b.ep.dev.doorbells.Add(1)
		b.ep.dev.port.Ring(b.island)
	}
}

// takeLocked copies the next message to s: the device may write the slot again
// at any time, so only the copy is looked at. Must hold rx.
func (b *mailbox) takeLocked(s *wire.Slot) bool {
	h := atomic.LoadUint64(b.rx.next) // SYNC: slot
	if wire.Header(h^b.rx.want).Phase() != 0 || b.rx.dead {
		return false
	}
	s.Header = h
	s.Payload = b.d2h[b.rx.head&b.mask].Payload
	if l := b.log.Load(); l != nil {
		l.add(b, true, s.Header, &s.Payload)
	}
	b.rx.head++
	b.aimLocked()
	if b.rx.head-b.rx.published > b.mask>>2 {
		b.publishLocked()
	}
	return true
}

// aimLocked works out what the next slot will look like, once per slot rather
// than once per poll. Must hold rx.
func (b *mailbox) aimLocked() {
	b.rx.next = &b.d2h[b.rx.head&b.mask].Header
	b.rx.want = uint64(wire.Header(0).WithPhase(b.phase(b.rx.head)))
}

// publishLocked shows the device how far d2h was consumed. Must hold rx.
func (b *mailbox) publishLocked() {
	if b.rx.published != b.rx.head {
		b.rx.published = b.rx.head
		atomic.StoreUint64(b.d2hHead, b.rx.head) // SYNC: room
	}
}

// drain takes what is there and publishes the room it made. It returns how many
// messages it took, and dry is false if there are more: a device that never
// stops must not keep a caller for ever.
func (b *mailbox) drain() (taken uint64, dry bool) {
	b.rx.Lock()
	first := b.rx.head
	dry = b.drainLocked()
	taken = b.rx.head - first
	b.rx.Unlock()
	return taken, dry
}

// drainLocked takes what is there; false if there is more. Must hold rx.
func (b *mailbox) drainLocked() bool {
	if b.rx.dead {
		return true
	}
	var s wire.Slot
	dry := false
	for n := b.mask + 1; n > 0; n-- {
		if !b.takeLocked(&s) {
			dry = true
			break
		}
		b.dispatchLocked(&s)
	}
	if !b.rx.dead {
		b.publishLocked()
	}
	return dry
}

// taken returns how many messages the device's ring has given so far.
func (b *mailbox) taken() uint64 {
	b.rx.Lock()
	defer b.rx.Unlock()
	return b.rx.head
}

// consumed returns how many slots the device took so far.
func (b *mailbox) consumed() uint64 {
	b.tx.Lock()
	defer b.tx.Unlock()
	return b.tx.head
}

// placed returns how many slots were put so far.
func (b *mailbox) placed() uint64 {
	b.tx.Lock()
	defer b.tx.Unlock()
	return b.tx.tail
}

// looked reports whether the device took the first n slots that were put.
func (b *mailbox) looked(n uint64) bool {
	b.tx.Lock()
	defer b.tx.Unlock()
	return b.tx.dead || atomic.LoadUint64(b.h2dHead) >= n // SYNC: room
}

// lost latches a device as lost that does not empty the mailbox.
func (b *mailbox) lost(after time.Duration) error {
	b.ep.fail(fmt.Errorf("%w: mailbox %d: full for %v", bridge.ErrDeviceLost, b.index, after))
	return b.ep.err()
}

// poll takes what is there unless somebody else does so already.
func (b *mailbox) poll() {
	if b.rx.TryLock() {
		b.drainLocked()
		b.rx.Unlock()
	}
}

// kill ends all use of the area by this mailbox. Nobody touches it afterwards.
func (b *mailbox) kill() {
	b.rx.Lock()
	b.rx.dead = true
	b.rx.Unlock()
	b.tx.Lock()
	b.tx.dead = true
	b.tx.Unlock()
}

const (
	yields = 64                    // rounds before a pause sleeps
	nap    = 50 * time.Microsecond // one sleep
)

// pause gives way while a ring is full: first to other goroutines, then, when
// that did not help, to other threads.
func pause(round int) {
	if round < yields {
		runtime.Gosched()
	} else {
		time.Sleep(nap)
	}
}

// newMailbox lays a mailbox over its memory.
func newMailbox(ep *epoch, index int) *mailbox {
	h := &ep.Hello
	b := &mailbox{ep: ep, index: index, island: index / int(h.Mailboxes/h.Islands)}
	b.runner, _ = ep.dev.port.(Runner)
	b.runs = &ep.runs[b.island]
	b.line = &ep.area.Island[b.island]
	if on := index % int(h.Mailboxes/h.Islands); h.Capabilities&wire.CapNews != 0 {
		b.news, b.number = 1<<(on&63), uint64(on)+1
	}
	b.log.Store(ep.dev.slots.Load())
	b.mask = uint64(h.Slots - 1)
	b.shift = bits.TrailingZeros(uint(h.Slots))
	b.h2d, b.d2h, b.h2dHead, b.d2hHead = ep.mailbox(index)
	b.aimLocked()
	return b
}
