package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// Rings is the Transport between processes of one machine and one user: memory of each member with
// cells for small frames, and a [ring.Ring] from each other member for the rest, all created by the
// reader. Memory of a process that ended is freed with it. The zero value of every field but Name
// is valid.
type Rings struct {
	// Name distinguishes groups of this machine; all members give the same.
	Name string
	// Packets and PacketSize are those of each ring; the defaults hold four
	// frames of up to 64 KiB. Larger frames are sent in pieces.
	Packets, PacketSize int
	// Wait is how a member waits for others. Adaptive does not spin where there are
	// more members than processors.
	Wait ring.Wait
}

const (
	ringPackets    = 5
	ringPacketSize = 64<<10 + 4<<10
	// dialPause is the time between two looks for a member that has not joined.
	dialPause = 2 * time.Millisecond
)

// pieceHeader precedes the bytes of a frame in a packet: the frame's header, its
// size and where the bytes begin in it, its number, and a gap that keeps the bytes
// aligned.
const pieceHeader = 16 + 8 + 8 + 8 + 8

// looks is how often a member looks for a frame before it sleeps; at one look in
// seldom it looks at all rings as well, for ends. On a crowded machine each look may
// take as long as others may keep the processor.
const (
	looks  = 220
	seldom = 8
	// expects is how often it looks for the frames of a step alone, before that.
	expects = 32
)

// here is how many members over rings this process has: they give way to each other
// first.
var here atomic.Int32

// ringLink is a member's end of all rings to and from it.
type ringLink struct {
	rank     int
	wait     ring.Wait
	poll     *ring.Poll
	own      *cells
	in       []ringIn
	out      []ringOut
	next     int       // the source to look at first
	all      bool      // the next look is at the rings as well, whatever the cells say
	full     int       // targets that had no room
	expected []*ringIn // whose frames expect took
	hushed   bool      // they are not watched
	closed   bool
	cancel   context.CancelFunc
	dials    sync.WaitGroup

	woken  atomic.Bool  // by Wake
	came   atomic.Int32 // writers that adopt has not seen
	mu     sync.Mutex   // guards dialed
	dialed []ringDial
}

// ringIn is the ring from one member.
type ringIn struct {
	ring  *ring.Ring
	r     *ring.Reader
	watch *ring.Watch
	ended bool
	held  bool   // a frame has not been released
	whole []byte // a frame that arrived in pieces

	number uint64           // of the last frame taken
	cell   uint64           // frames taken from cells
	pieces uint64           // pieces taken from the ring
	from   [cellsEach]*cell // those of this member
	lies   *cell            // where the frame is that is held, nil: in the ring
}

// ringOut is the ring to one member; w is nil until that member has joined.
type ringOut struct {
	ring   *ring.Ring
	w      *ring.Writer
	cells  *cells
	watch  *ring.Watch
	gone   bool
	why    error       // it never joined, nil: it ended
	frame  frameHeader // what is being sent, its size, and how much is sent
	size   int
	sent   int
	staged int // bytes of the piece in the packet under the head, -1: none

	number, cell, pieces uint64           // as those of ringIn
	to                   [cellsEach]*cell // for frames to it, nil: there are none
}

type ringDial struct {
	to    int
	ring  *ring.Ring
	w     *ring.Writer
	cells *cells

	failed error // there is nothing else
}

func (t Rings) ringName(from, to int) string { return fmt.Sprintf("%s-%d-%d", t.Name, from, to) }

// connect takes a rank.
func (t Rings) connect(rank, size int) (_ memberLink, err error) {
	if t.Packets == 0 {
		t.Packets = ringPackets
	}
	if t.PacketSize == 0 {
		t.PacketSize = ringPacketSize
	}
	if t.Wait == ring.Adaptive && size > runtime.NumCPU() {
		t.Wait = ring.Yield // who is waited for may have no processor
	}
	here.Add(1) // until Close
	ctx, cancel := context.WithCancel(context.Background())
	l := &ringLink{rank: rank, wait: t.Wait, in: make([]ringIn, size), out: make([]ringOut, size), cancel: cancel}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.poll, err = ring.NewPoll(ring.Park); err != nil {
		return nil, err
	}
	if l.own, err = newCells(t.Name, rank, size); err != nil {
		return nil, refused(err)
	}
	for from := range l.in {
		if from == rank {
			continue
		}
		if err := l.listen(ctx, t, from); err != nil {
			return nil, err
		}
	}
	for to := range l.out {
		if to != rank {
			l.dials.Add(1)
			go l.dial(ctx, t, to)
		}
	}
	return l, nil
}

// listen makes the ring from a member.
func (l *ringLink) listen(ctx context.Context, t Rings, from int) (err error) {
	in := &l.in[from]
	in.ring, err = ring.Create(t.ringName(from, l.rank), ring.Config{Packets: t.Packets, PacketSize: t.PacketSize, Wait: t.Wait})
	if err != nil {
		return refused(err)
	}
	if in.r, err = in.ring.Reader(ctx); err != nil {
		return err
	}
	in.from = l.own.of(from)
	in.watch, err = l.poll.Add(in.r)
	return err
}

// refused is what a ring that cannot be made says of the options.
func refused(err error) error {
	switch {
	case errors.Is(err, ring.ErrExists):
		return ErrRankTaken
	case errors.Is(err, ring.ErrConfig):
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return err
}

// dial opens the ring to a member, and its cells, once that has made them.
func (l *ringLink) dial(ctx context.Context, t Rings, to int) {
	defer l.dials.Done()
	for ctx.Err() == nil {
		d, err := t.open(ctx, l.rank, to)
		if err == nil || lasting(err) {
			d.failed = err
			l.mu.Lock()
			l.dialed = append(l.dialed, d)
			l.mu.Unlock()
			l.came.Add(1)
			l.Wake()
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(dialPause):
		}
	}
}

// lasting reports whether there is no use in another try: the member that is dialed
// may be there, but nothing leads to it.
func lasting(err error) bool {
	for _, is := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, ring.ErrPermission, ring.ErrVersion} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// open opens what a member has made for another one.
func (t Rings) open(ctx context.Context, from, to int) (d ringDial, err error) {
	d.to = to
	memory, err := ring.Open(ctx, cellsName(t.Name, to), ring.Options{})
	if err != nil {
		return d, err
	}
	if d.cells, err = cellsOf(memory); err == nil {
		if d.ring, err = ring.Open(ctx, t.ringName(from, to), ring.Options{Wait: t.Wait}); err == nil {
			if d.w, err = d.ring.Writer(ctx); err == nil {
				return d, nil
			}
			_ = d.ring.Close() // it was not used
		}
	}
	_ = memory.Close() // as well
	return d, err
}

// adopt takes over the rings that dial has opened; false if there are none.
func (l *ringLink) adopt() bool {
	if l.came.Load() == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.dialed {
		o := &l.out[d.to]
		if d.failed != nil {
			o.gone, o.why = true, fmt.Errorf("%w: %w", ErrGone, d.failed)
			continue
		}
		o.ring, o.w, o.cells, o.staged = d.ring, d.w, d.cells, -1
		var err error
		if o.watch, err = l.poll.Add(d.w); err != nil {
			o.gone = true
			continue
		}
		o.watch.On = false
		if l.rank < o.cells.size {
			o.to = o.cells.of(l.rank)
		}
	}
	l.came.Add(-int32(len(l.dialed)))
	l.dialed = l.dialed[:0]
	return true
}

func (l *ringLink) TrySend(to int, h frameHeader, data []byte) (bool, error) {
	l.adopt()
	o := &l.out[to]
	switch {
	case o.gone && o.why != nil:
		return false, o.why
	case o.gone:
		return false, ErrGone
	case l.in[to].ended:
		return l.lost(o)
	case o.w == nil:
		return false, nil
	}
	if len(data) <= cellData && o.put(h, data) {
		o.size, o.sent = -1, 0 // what was begun is given up
		l.waits(o, false)
		return true, nil
	}
	return l.sendPieces(o, h, data)
}

// sendPieces sends a frame through the ring, as far as there is room.
func (l *ringLink) sendPieces(o *ringOut, h frameHeader, data []byte) (bool, error) {
	if o.frame != h || o.size != len(data) {
		o.frame, o.size, o.sent, o.staged = h, len(data), 0, -1
	}
	for {
		if o.staged < 0 && !o.stage(data) {
			return l.lost(o)
		}
		ok, err := o.w.TryCommit(pieceHeader + o.staged)
		if err != nil {
			return l.lost(o)
		}
		l.waits(o, !ok)
		if !ok {
			return false, nil
		}
		o.pieces++
		if l.rank < o.cells.size {
			o.cells.pieces(l.rank).Store(o.pieces)
		}
		o.sent += o.staged
		o.staged = -1
		if o.sent == len(data) {
			o.number++
			o.size, o.sent = -1, 0 // no frame: an equal one that follows is another
			return true, nil
		}
	}
}

// waits notes whether a target has no room.
func (l *ringLink) waits(o *ringOut, room bool) {
	switch {
	case room && !o.watch.On:
		l.full++
	case !room && o.watch.On:
		l.full--
	}
	o.watch.On = room
}

func (l *ringLink) lost(o *ringOut) (bool, error) {
	o.gone = true
	if o.watch != nil {
		l.waits(o, false)
	}
	return false, ErrGone
}

// stage writes the next piece into the packet under the head.
func (o *ringOut) stage(data []byte) bool {
	p := o.w.Reserve()
	if p == nil {
		return false
	}
	h := o.frame
	binary.LittleEndian.PutUint64(p, h.Step)
	binary.LittleEndian.PutUint32(p[8:], h.Epoch)
	binary.LittleEndian.PutUint16(p[12:], h.Tag)
	p[14], p[15] = byte(h.Op), byte(h.Flags)
	binary.LittleEndian.PutUint64(p[16:], uint64(len(data)))
	binary.LittleEndian.PutUint64(p[24:], uint64(o.sent))
	binary.LittleEndian.PutUint64(p[32:], o.number+1)
	o.staged = copy(p[pieceHeader:], data[o.sent:])
	return true
}

func (l *ringLink) TryReceive(f *frame) bool {
	for range l.in {
		from := l.next
		if l.next++; l.next == len(l.in) {
			l.next = 0
		}
		in := &l.in[from]
		if in.r == nil || !l.all && !in.some(l.own, from) || in.held || in.ended {
			continue
		}
		*f = frame{From: from}
		ok, err := in.receive(f)
		if err != nil {
			in.ended, in.watch.On = true, false
			f.End = ErrGone
			if errors.Is(err, ring.EOF) {
				f.End = ErrClosed
			}
			return true
		}
		if ok {
			in.held, in.watch.On = true, false
			return true
		}
	}
	l.all = false
	return false
}

// receive takes the next frame, wherever it is. A frame that was put into a cell before an end is
// delivered before the end.
func (in *ringIn) receive(f *frame) (bool, error) {
	ok, err := in.fromCell(f)
	if ok || err != nil {
		return ok, err
	}
	if ok, err = in.fromRing(f); err == nil {
		return ok, nil
	}
	if ok, serr := in.fromCell(f); ok || serr != nil {
		return ok, serr
	}
	return false, err
}

// fromRing takes pieces until a frame is whole.
func (in *ringIn) fromRing(f *frame) (bool, error) {
	for {
		p, ok, err := in.r.TryPeek()
		if !ok {
			return false, err
		}
		if len(p) < pieceHeader {
			return false, fmt.Errorf("%w: a piece of %d bytes", ring.ErrCorrupt, len(p))
		}
		f.frameHeader = frameHeader{
			Step: binary.LittleEndian.Uint64(p), Epoch: binary.LittleEndian.Uint32(p[8:]),
			Tag: binary.LittleEndian.Uint16(p[12:]), Op: operation(p[14]), Flags: frameFlags(p[15]),
		}
		size, at, number := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:]), binary.LittleEndian.Uint64(p[32:])
		if number > in.number+1 {
			return false, nil // the frame before it is in a cell
		}
		in.pieces++
		whole, err := in.piece(p[pieceHeader:], size, at, number, f)
		if whole {
			in.number++
		}
		if whole || err != nil {
			return whole, err
		}
	}
}

// piece takes one piece of the frame of a number.
func (in *ringIn) piece(p []byte, size, at, number uint64, f *frame) (whole bool, err error) {
	if number <= in.number { // begun, and given up
		in.r.Release()
		return false, nil
	}
	if at == 0 {
		in.whole = in.whole[:0] // what was begun before was given up
		if size == uint64(len(p)) {
			f.Data = p
			return true, nil
		}
	}
	if at != uint64(len(in.whole)) || at+uint64(len(p)) > size {
		return false, fmt.Errorf("%w: a piece of %d bytes at %d of %d", ring.ErrCorrupt, len(p), at, size)
	}
	in.whole = append(in.whole, p...)
	in.r.Release()
	f.Data = in.whole
	return uint64(len(in.whole)) == size, nil
}

func (l *ringLink) Release(f *frame) {
	in := &l.in[f.From]
	in.held, in.watch.On = false, !in.ended
	if in.lies != nil {
		in.lies.number.Store(0)
		in.lies = nil
		return
	}
	in.r.Release() // without a packet, after pieces, it does nothing
}

// some reports whether there may be a frame.
func (l *ringLink) some() bool {
	for from := range l.in {
		if from != l.rank && l.in[from].some(l.own, from) {
			return true
		}
	}
	return false
}

func (l *ringLink) Wait(_ int, until time.Time) {
	l.hush()
	for round := range looks {
		if l.adopt() || l.some() || l.woken.Load() || !until.IsZero() && !time.Now().Before(until) {
			l.woken.Store(false)
			return
		}
		if (l.full > 0 || round%seldom == seldom-1) && l.poll.Ready() {
			l.all = true
			return
		}
		if here.Load() > 1 {
			runtime.Gosched()
		}
		if !l.wait.Pause(round) {
			break
		}
	}
	parked := &l.own.info().parked
	parked.Store(1)
	if !l.some() {
		l.poll.Wait(until)
	}
	parked.Store(0)
	l.woken.Store(false)
	l.all = true
}

func (l *ringLink) Wake() {
	l.woken.Store(true)
	l.poll.Wake()
}

func (l *ringLink) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	here.Add(-1)
	l.cancel()
	l.dials.Wait()
	var errs []error
	if l.poll != nil {
		l.adopt()
		errs = append(errs, l.poll.Close())
	}
	for i := range l.out {
		if o := &l.out[i]; o.w != nil {
			errs = append(errs, o.w.Close(), o.ring.Close(), o.cells.ring.Close())
		}
	}
	for i := range l.in {
		if in := &l.in[i]; in.ring != nil {
			errs = append(errs, in.ring.Close())
		}
	}
	if l.own != nil {
		errs = append(errs, l.own.ring.Close())
	}
	return errors.Join(errs...)
}
