package nfcomms

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfcomms/nfcomms/bridge"
)

// stripe is one channel's part of a striped buffer, in bytes from its start.
type stripe struct{ offset, size int }

// stripesOf divides size bytes among n channels, as SendStriped says. It returns nil if n is not
// positive or size is negative.
func stripesOf(size, n int) []stripe {
	if n <= 0 || size < 0 {
		return nil
	}
	chunk := (size-1)/n/pageSize*pageSize + pageSize
	if chunk < 0 { // rounded up beyond the largest int
		chunk = size
	}
	stripes := make([]stripe, n)
	offset := 0
	for i := range stripes {
		length := min(chunk, size-offset)
		stripes[i] = stripe{offset: offset, size: length}
		offset += length
	}
	return stripes
}

// SendStriped sends the first size bytes of data as one transfer per channel, all at once, and small
// ones without a goroutine each. Stripes are of size/len(chs) bytes rounded up to a whole number of
// 4096-byte pages; the one in which the buffer ends is shorter, and those after it are empty, and
// are sent as well. SendStriped returns nil once every target holds its stripe. After an
// error the other transfers are ended, and the error is a *StripeError that
// names the stripe and reports which ones were delivered. data is as for SendInd;
// an object given by pointer moves to the heap.
func SendStriped(ctx context.Context, data any, size int, chs ...*Channel) error {
	err := striped(ctx, data, size, chs, opSendStriped)
	return wrap(opSendStriped, "", 0, err)
}

// ReceiveStriped fills the first size bytes of data by one transfer per
// channel, divided as SendStriped does, and returns size, or 0 with an error.
// After an error the contents of data are undefined.
func ReceiveStriped(ctx context.Context, data any, size int, chs ...*Channel) (int, error) {
	err := striped(ctx, data, size, chs, opReceiveStriped)
	return done(size, wrap(opReceiveStriped, "", 0, err))
}

// striped moves every stripe of data.
func striped(ctx context.Context, data any, size int, chs []*Channel, op string) error {
	objectFor := readableObject
	if op == opReceiveStriped {
		objectFor = writableObject
	}
	o, err := objectFor(data, []int{size})
	if err == nil {
		err = distinct(chs)
	}
	if err != nil {
		return unlessEnded(ctx, err)
	}
	s := &striping{chs: chs, stripes: stripesOf(size, len(chs)), delivered: make([]bool, len(chs)), data: data,
		mem: o.mem, sends: op == opSendStriped}
	return s.run(ctx)
}

// distinct returns ErrInvalid unless there are channels, each once.
func distinct(chs []*Channel) error {
	if len(chs) == 0 {
		return fmt.Errorf("no channels to stripe over: %w", ErrInvalid)
	}
	seen := make(map[*Channel]int, len(chs))
	for i, ch := range chs {
		if ch == nil {
			return fmt.Errorf("channel %d is nil: %w", i, ErrInvalid)
		}
		if first, dup := seen[ch]; dup {
			return fmt.Errorf("channels %d and %d are the same: %w", first, i, ErrInvalid)
		}
		seen[ch] = i
	}
	return nil
}

// striping is one striped transfer.
type striping struct {
	chs     []*Channel
	stripes []stripe
	sends   bool
	mem     []byte
	// data is kept so that the object is on the heap: other goroutines work
	// on it, and a stack would be this one's own.
	data any

	delivered []bool // each written by its own goroutine
	once      sync.Once
	failed    *StripeError
}

// run moves all stripes and returns the first error. Stripes that
// can begin without waiting do, and most of them have ended when the last has begun; each of
// the others gets a goroutine.
func (s *striping) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := make([]bridge.Beginner, len(s.chs))
	for i := range s.chs {
		begun[i] = s.begin(ctx, i)
	}
	var wg sync.WaitGroup
	for i := range s.chs {
		if begun[i] != nil {
			if ended, err := s.end(ctx, i, begun[i], false); ended {
				s.note(i, err, cancel)
				continue
			}
		}
		wg.Go(func() { s.note(i, s.move(ctx, i, begun[i]), cancel) })
	}
	wg.Wait()
	if s.failed != nil {
		s.failed.Delivered = s.delivered
		return s.failed
	}
	return nil
}

// part is the memory of stripe i.
func (s *striping) part(i int) []byte {
	st := s.stripes[i]
	return s.mem[st.offset : st.offset+st.size]
}

// begin begins stripe i without waiting; nil if its channel cannot.
func (s *striping) begin(ctx context.Context, i int) bridge.Beginner {
	b, ok := s.chs[i].ch.(bridge.Beginner)
	switch {
	case !ok:
		return nil
	case s.sends:
		ok = b.BeginSendInd(ctx, s.part(i))
	default:
		ok = b.BeginReceiveInd(ctx, s.part(i))
	}
	if !ok {
		return nil
	}
	return b
}

// end ends stripe i, which was begun; for wait see [bridge.Beginner].
func (s *striping) end(ctx context.Context, i int, b bridge.Beginner, wait bool) (ended bool, err error) {
	if s.sends {
		return b.EndSendInd(ctx, s.part(i), wait)
	}
	return b.EndReceiveInd(ctx, s.part(i), wait)
}

// move moves stripe i, or what is left of it if it was begun.
func (s *striping) move(ctx context.Context, i int, b bridge.Beginner) error {
	var err error
	switch {
	case b != nil:
		_, err = s.end(ctx, i, b, true)
	case s.sends:
		err = s.chs[i].ch.SendInd(ctx, s.part(i))
	default:
		err = s.chs[i].ch.ReceiveInd(ctx, s.part(i))
	}
	return err
}

// note takes the end of stripe i. The first error ends the others; those that it causes
// do not matter.
func (s *striping) note(i int, err error, cancel context.CancelFunc) {
	if err == nil {
		s.delivered[i] = true
		return
	}
	s.once.Do(func() {
		s.failed = &StripeError{Index: i, Target: s.chs[i].Target(), Offset: s.stripes[i].offset, Size: s.stripes[i].size, Err: err}
	})
	cancel()
}
