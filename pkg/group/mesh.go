package group

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Mesh is the Transport between goroutines of this process, for one group: a rank that
// was taken once stays so. Each member has an inbox that the others append to, and a
// board that they look at; nothing else is shared.
type Mesh struct {
	members []meshLink
	left    atomic.Int32 // how many have left
}

// NewMesh makes a Mesh for so many members.
func NewMesh(size int) *Mesh {
	m := &Mesh{members: make([]meshLink, max(size, 0))}
	for i := range m.members {
		l := &m.members[i]
		l.mesh, l.rank, l.in, l.board = m, i, &l.first, new(board)
		l.wake = make(chan struct{}, 1) // 1: a wake is not lost before the wait
	}
	return m
}

// connect takes a rank.
func (m *Mesh) connect(rank, size int) (memberLink, error) {
	if size != len(m.members) {
		return nil, fmt.Errorf("%w: a mesh of %d members", ErrDisagree, len(m.members))
	}
	l := &m.members[rank]
	if l.taken.Swap(true) {
		return nil, ErrRankTaken
	}
	return l, nil
}

// Frames of up to smallFrame bytes are copied into an inbox under its lock;
// larger ones into a buffer of their own, outside of it.
const smallFrame = 4 << 10

// meshLink is a member's inbox.
type meshLink struct {
	mesh  *Mesh
	rank  int
	taken atomic.Bool
	wake  chan struct{}
	board *board
	small [2 * perEpoch]pool[byte] // small packages on the board
	// These change under mu; boards are used without.
	parked atomic.Int32 // the member waits for so many frames, or is about to; 0: it runs
	closed atomic.Bool
	came   atomic.Bool // there are frames in the inbox

	mu    sync.Mutex              // guards what follows, up to the gap
	in    *batch                  // what has arrived since the last look
	spare [bits.UintSize][][]byte // buffers for large frames, by the power of two

	out   *batch   // what is being read
	next  int      // the frame in it that is next
	free  []*batch // read and released
	timer *time.Timer
	first batch
}

// batch is what arrived between two looks: frames, and the bytes of small ones.
type batch struct {
	frames []meshFrame
	bytes  []byte
	rest   []meshRest
	live   int // frames not yet released
}

// meshFrame is a frame in an inbox, without pointers: its bytes are at
// [at:at+size] of the batch's, or size is inRest and the rest of it is there.
type meshFrame struct {
	frameHeader
	from, size int32
	at         int
}

const inRest = -1

// meshRest is what few frames have: bytes of their own, an end.
type meshRest struct {
	large []byte
	end   error
}

// align keeps the bytes of frames aligned for any event type.
const align = 16

func (l *meshLink) TrySend(to int, h frameHeader, data []byte) (bool, error) {
	far := &l.mesh.members[to]
	if len(data) <= smallFrame {
		return far.put(meshFrame{frameHeader: h, from: int32(l.rank), size: int32(len(data))}, data, meshRest{})
	}
	large := far.buffer(len(data))
	copy(large, data)
	return far.put(meshFrame{frameHeader: h, from: int32(l.rank), size: inRest}, nil, meshRest{large: large})
}

// put appends a frame to the inbox and wakes its member.
func (l *meshLink) put(f meshFrame, small []byte, rest meshRest) (bool, error) {
	l.mu.Lock()
	if l.closed.Load() {
		l.mu.Unlock()
		return false, ErrGone
	}
	b := l.in
	if len(small) > 0 {
		f.at = (len(b.bytes) + align - 1) &^ (align - 1)
		b.bytes = append(b.bytes, padding[:f.at-len(b.bytes)]...)
		b.bytes = append(b.bytes, small...)
	}
	if f.size == inRest {
		f.at = len(b.rest)
		b.rest = append(b.rest, rest)
	}
	b.frames = append(b.frames, f)
	l.came.Store(true)
	parked := int(l.parked.Load())
	wake := parked > 0 && (len(b.frames) >= parked || f.Urgent() || rest.end != nil)
	if wake {
		l.parked.Store(0)
	}
	l.mu.Unlock()
	if wake {
		l.Wake()
	}
	return true, nil
}

var padding [align]byte

// buffer returns room for a large frame, used again where there was one.
func (l *meshLink) buffer(n int) []byte {
	class := bits.Len(uint(n - 1))
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.spare[class]; len(s) > 0 {
		l.spare[class] = s[:len(s)-1]
		return s[len(s)-1][:n]
	}
	return make([]byte, n, 1<<class)
}

func (l *meshLink) TryReceive(f *frame) bool {
	if l.out == nil && !l.refill() {
		return false
	}
	b := l.out
	m := &b.frames[l.next]
	l.next++
	*f = frame{frameHeader: m.frameHeader, From: int(m.from), Lease: b}
	switch {
	case m.size == inRest:
		f.Data, f.End = b.rest[m.at].large, b.rest[m.at].end
	case m.size > 0:
		f.Data = b.bytes[m.at : m.at+int(m.size) : m.at+int(m.size)]
	}
	if l.next == len(b.frames) {
		l.out = nil // Release gives it back
	}
	return true
}

// refill takes all that has arrived; false if nothing has.
func (l *meshLink) refill() bool {
	n := len(l.free)
	if n == 0 {
		l.free, n = append(l.free, new(batch)), 1
	}
	l.mu.Lock()
	b := l.in
	if len(b.frames) == 0 {
		l.mu.Unlock()
		return false
	}
	l.in = l.free[n-1]
	l.came.Store(false)
	l.mu.Unlock()
	l.free = l.free[:n-1]
	b.live = len(b.frames)
	l.out, l.next = b, 0
	return true
}

func (l *meshLink) Release(f *frame) {
	if len(f.Data) > smallFrame {
		class := bits.Len(uint(cap(f.Data) - 1))
		l.mu.Lock()
		l.spare[class] = append(l.spare[class], f.Data)
		l.mu.Unlock()
	}
	b := f.Lease.(*batch)
	if b.live--; b.live == 0 {
		clear(b.rest) // keeps no large buffer alive
		b.frames, b.bytes, b.rest = b.frames[:0], b.bytes[:0], b.rest[:0]
		l.free = append(l.free, b)
	}
}

// yields is how often a member gives way before it sleeps. Those waited for run
// meanwhile: on two processors half of them do after one time, and to park, and be
// woken, costs more than the others (docs/design/0088).
const yields = 4

func (l *meshLink) Wait(frames int, until time.Time) {
	for range yields {
		runtime.Gosched()
		if l.came.Load() {
			return
		}
	}
	if l.park(frames) {
		l.sleep(until)
	}
}

func (l *meshLink) Wake() {
	select {
	case l.wake <- struct{}{}:
	default: // it is awake already
	}
}

func (l *meshLink) Close() error {
	l.leave(ErrClosed)
	return nil
}

// leave reports the end of this member to all others.
func (l *meshLink) leave(end error) {
	l.mu.Lock()
	was := l.closed.Swap(true)
	l.mesh.left.Add(1)
	l.mu.Unlock()
	if was {
		return
	}
	for i := range l.mesh.members {
		if i != l.rank {
			_, _ = l.mesh.members[i].put(meshFrame{from: int32(l.rank), size: inRest}, nil, meshRest{end: end}) // who left needs no word
		}
	}
}
