package nfcomms

import (
	"context"
	"fmt"
	"sync"
)

// Stripe is one channel's part of a striped buffer.
type Stripe struct {
	// Offset and Size are in bytes, from the start of the buffer.
	Offset, Size int
}

// Stripes divides size bytes among n channels. The law: all chunks are of
// ceil(size/n) bytes rounded up to a whole number of 4096-byte pages; the chunk
// in which the buffer ends is shorter, and those after it are empty. It returns
// nil if n is not positive or size is negative.
func Stripes(size, n int) []Stripe {
	if n <= 0 || size < 0 {
		return nil
	}
	chunk := (size-1)/n/pageSize*pageSize + pageSize
	if chunk < 0 { // rounded up beyond the largest int
		chunk = size
	}
	stripes := make([]Stripe, n)
	offset := 0
	for i := range stripes {
		length := min(chunk, size-offset)
		stripes[i] = Stripe{Offset: offset, Size: length}
		offset += length
	}
	return stripes
}

// SendStriped sends the first size bytes of data as one transfer per channel,
// all at once: channel i carries stripe i of Stripes(size, len(chs)), an empty
// one too (N49). It returns nil once every target holds its stripe. After an
// error the other transfers are ended, and the error is a *StripeError that
// names the stripe and reports which ones were delivered. data is as for SendInd;
// an object given by pointer moves to the heap.
func SendStriped(ctx context.Context, data any, size int, chs ...*Channel) error {
	err := striped(ctx, data, size, chs, OpSendStriped, (*Channel).sendObject)
	return wrap(OpSendStriped, "", 0, err)
}

// ReceiveStriped fills the first size bytes of data by one transfer per
// channel, divided as SendStriped does, and returns size, or 0 with an error.
// After an error the contents of data are undefined.
func ReceiveStriped(ctx context.Context, data any, size int, chs ...*Channel) (int, error) {
	err := striped(ctx, data, size, chs, OpReceiveStriped, (*Channel).receiveObject)
	return done(size, wrap(OpReceiveStriped, "", 0, err))
}

// striped moves every stripe of data with move.
func striped(ctx context.Context, data any, size int, chs []*Channel, op string,
	move func(*Channel, context.Context, object) error) error {
	o, err := objectOf(data)
	if err == nil {
		o, err = o.first([]int{size})
	}
	if err == nil && op == OpReceiveStriped {
		err = o.writable()
	}
	if err == nil {
		err = distinct(chs)
	}
	if err != nil {
		return err
	}
	s := &striping{chs: chs, stripes: Stripes(size, len(chs)), delivered: make([]bool, len(chs)), data: data}
	return s.run(ctx, o, move)
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
	chs       []*Channel
	stripes   []Stripe
	delivered []bool // each written by its own goroutine
	// data is kept so that the object is on the heap: other goroutines work
	// on it, and a stack would be this one's own.
	data any

	once   sync.Once
	failed *StripeError
}

// run moves all stripes and returns the error that came first.
func (s *striping) run(ctx context.Context, o object, move func(*Channel, context.Context, object) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for i, ch := range s.chs {
		wg.Go(func() {
			part := o
			st := s.stripes[i]
			part.mem = o.mem[st.Offset : st.Offset+st.Size]
			if err := move(ch, ctx, part); err != nil {
				s.fail(i, err)
				cancel()
				return
			}
			s.delivered[i] = true
		})
	}
	wg.Wait()
	if s.failed != nil {
		s.failed.Delivered = s.delivered
		return s.failed
	}
	return nil
}

// fail keeps the first error; those it causes do not matter.
func (s *striping) fail(i int, err error) {
	s.once.Do(func() {
		s.failed = &StripeError{Index: i, Target: s.chs[i].Target(), Stripe: s.stripes[i], Err: err}
	})
}
