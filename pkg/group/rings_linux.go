package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// Rings is the Transport between processes of one machine and one user: a
// [ring.Ring] from each member to each other, made by who reads it. What is left
// of a process that ended goes with it. The zero value of every field but Name is
// valid.
type Rings struct {
	// Name tells groups of this machine apart; all members give the same.
	Name string
	// Packets and PacketSize are those of each ring; the defaults hold four
	// frames of up to 64 KiB. Larger frames go in pieces.
	Packets, PacketSize int
	// Wait is how a member waits for others. Adaptive does not spin where there are
	// more members than processors.
	Wait ring.Wait
}

const (
	ringPackets    = 5
	ringPacketSize = 64<<10 + 4<<10
	// dialPause is the time between two looks for a member that has not come.
	dialPause = 2 * time.Millisecond
)

// pieceHeader precedes the bytes of a frame in a packet: the frame's header, its
// size and where the bytes begin in it.
const pieceHeader = 16 + 8 + 8

// ringLink is a member's end of all rings to and from it.
type ringLink struct {
	rank   int
	poll   *ring.Poll
	in     []ringIn
	out    []ringOut
	next   int // the source to look at first
	closed bool
	cancel context.CancelFunc
	dials  sync.WaitGroup

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
	whole []byte // a frame that came in pieces
}

// ringOut is the ring to one member; w is nil until it has come.
type ringOut struct {
	ring   *ring.Ring
	w      *ring.Writer
	watch  *ring.Watch
	gone   bool
	frame  Header // what is being sent, its size, and how much has gone
	size   int
	sent   int
	staged int // bytes of the piece in the packet under the head, -1: none
}

type ringDial struct {
	to   int
	ring *ring.Ring
	w    *ring.Writer
}

func (t Rings) ringName(from, to int) string { return fmt.Sprintf("%s-%d-%d", t.Name, from, to) }

// Connect takes a rank.
func (t Rings) Connect(rank, size int) (_ Link, err error) {
	if t.Packets == 0 {
		t.Packets = ringPackets
	}
	if t.PacketSize == 0 {
		t.PacketSize = ringPacketSize
	}
	if t.Wait == ring.Adaptive && size > runtime.NumCPU() {
		t.Wait = ring.Yield // who is waited for may have no processor
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &ringLink{rank: rank, in: make([]ringIn, size), out: make([]ringOut, size), cancel: cancel}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.poll, err = ring.NewPoll(t.Wait); err != nil {
		return nil, err
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
	switch {
	case errors.Is(err, ring.ErrExists):
		return ErrRankTaken
	case errors.Is(err, ring.ErrConfig):
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err != nil {
		return err
	}
	if in.r, err = in.ring.Reader(ctx); err != nil {
		return err
	}
	in.watch, err = l.poll.Add(in.r)
	return err
}

// dial opens the ring to a member once that has made it.
func (l *ringLink) dial(ctx context.Context, t Rings, to int) {
	defer l.dials.Done()
	for ctx.Err() == nil {
		r, err := ring.Open(ctx, t.ringName(l.rank, to), ring.Options{Wait: t.Wait})
		if err == nil {
			var w *ring.Writer
			if w, err = r.Writer(ctx); err == nil {
				l.mu.Lock()
				l.dialed = append(l.dialed, ringDial{to, r, w})
				l.mu.Unlock()
				l.came.Add(1)
				l.Wake()
				return
			}
			_ = r.Close() // it was not used
		}
		select {
		case <-ctx.Done():
		case <-time.After(dialPause):
		}
	}
}

// adopt takes over the rings that dial has opened.
func (l *ringLink) adopt() {
	if l.came.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.dialed {
		o := &l.out[d.to]
		o.ring, o.w, o.staged = d.ring, d.w, -1
		var err error
		if o.watch, err = l.poll.Add(d.w); err != nil {
			o.gone = true
			continue
		}
		o.watch.On = false
	}
	l.came.Add(-int32(len(l.dialed)))
	l.dialed = l.dialed[:0]
}

func (l *ringLink) TrySend(to int, h Header, data []byte) (bool, error) {
	l.adopt()
	o := &l.out[to]
	switch {
	case o.gone:
		return false, ErrGone
	case o.w == nil && l.in[to].ended:
		return o.lost() // its own ring went before it was opened
	case o.w == nil:
		return false, nil
	case o.frame != h || o.size != len(data):
		o.frame, o.size, o.sent, o.staged = h, len(data), 0, -1
	}
	for {
		if o.staged < 0 && !o.stage(data) {
			return o.lost()
		}
		ok, err := o.w.TryCommit(pieceHeader + o.staged)
		if err != nil {
			return o.lost()
		}
		o.watch.On = !ok
		if !ok {
			return false, nil
		}
		o.sent += o.staged
		o.staged = -1
		if o.sent == len(data) {
			o.frame, o.sent = Header{}, 0
			o.size = -1 // no frame: an equal one that follows is another
			return true, nil
		}
	}
}

func (o *ringOut) lost() (bool, error) {
	o.gone = true
	if o.watch != nil {
		o.watch.On = false
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
	o.staged = copy(p[pieceHeader:], data[o.sent:])
	return true
}

func (l *ringLink) TryReceive(f *Frame) bool {
	for range l.in {
		from := l.next
		if l.next++; l.next == len(l.in) {
			l.next = 0
		}
		in := &l.in[from]
		if in.r == nil || in.held || in.ended {
			continue
		}
		*f = Frame{From: from}
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
	return false
}

// receive takes pieces until a frame is whole.
func (in *ringIn) receive(f *Frame) (bool, error) {
	for {
		p, ok, err := in.r.TryPeek()
		if !ok {
			return false, err
		}
		if len(p) < pieceHeader {
			return false, fmt.Errorf("%w: a piece of %d bytes", ring.ErrCorrupt, len(p))
		}
		f.Header = Header{
			Step: binary.LittleEndian.Uint64(p), Epoch: binary.LittleEndian.Uint32(p[8:]),
			Tag: binary.LittleEndian.Uint16(p[12:]), Op: Op(p[14]), Flags: Flags(p[15]),
		}
		size, at := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
		p = p[pieceHeader:]
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
		if uint64(len(in.whole)) == size {
			f.Data = in.whole
			return true, nil
		}
	}
}

func (l *ringLink) Release(f *Frame) {
	in := &l.in[f.From]
	in.held, in.watch.On = false, !in.ended
	in.r.Release() // without a packet, after pieces, it does nothing
}

func (l *ringLink) Wait(_ int, until time.Time) { l.poll.Wait(until) }

func (l *ringLink) Wake() { l.poll.Wake() }

func (l *ringLink) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	l.cancel()
	l.dials.Wait()
	var errs []error
	if l.poll != nil {
		l.adopt()
		errs = append(errs, l.poll.Close())
	}
	for i := range l.out {
		if o := &l.out[i]; o.w != nil {
			errs = append(errs, o.w.Close(), o.ring.Close())
		}
	}
	for i := range l.in {
		if in := &l.in[i]; in.ring != nil {
			errs = append(errs, in.ring.Close())
		}
	}
	return errors.Join(errs...)
}
