package nfcomms

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Select waits until one of the cases can run, lets exactly that one take
// effect and returns its index. Among several that are ready the choice is
// random and even.
//
// A context that has ended wins over ready cases: the index is -1, the error an
// ErrWithdrawn, and no case took effect. An error with an index belongs to that
// case, which counts as chosen: a closed channel, say. Two cases on the same
// half of one channel, two defaults, and more than 65,534 cases of Go
// channels are ErrInvalid.
//
// Any number of Selects may wait for the same half, and each is woken: where it
// sends in order of arrival, among the calls that send, so that neither starves;
// where it receives one for each offer, in order of arrival too. While another
// call receives, a case that receives is not ready.
//
// A chosen SendIndCase or ReceiveIndCase runs to its end, which a ctx that ends
// aborts as it does SendInd and ReceiveInd.
//
// Select costs more than a plain call: to ask a target whether it is ready
// takes a message there and back. Where the device does not answer that, Select with
// a case that sends returns when it is lost, see Channel, also with Default.
//
// A send after a waiting Select waits until the target was ready for
// that Select, or it chose another case: see SendCase.
func Select(ctx context.Context, cases ...Case) (int, error) {
	s := selection{cases: cases, fallback: -1}
	err := unlessEnded(ctx, s.check())
	if err != nil {
		return -1, wrap(opSelect, "", 0, err)
	}
	if i, err := s.poll(ctx, nil); i >= 0 {
		return i, err
	}
	if s.fallback >= 0 && ctx.Err() == nil {
		return s.fallback, nil
	}
	i, err := s.block(ctx)
	if i < 0 {
		err = wrap(opSelect, "", 0, &WithdrawnError{Cause: ctx.Err()})
	}
	return i, err
}

// maxNativeCases is how many cases of Go channels one Select may have: package
// reflect waits for 65,536 at once, and the end of the context and of the
// device channels' sleep are two. Cases of device channels do not count.
const maxNativeCases = 1<<16 - 2

// selection is one call of Select.
type selection struct {
	cases    []Case
	fallback int // index of Default, or -1
}

// check refuses cases that cannot stand together.
func (s *selection) check() error {
	type half struct {
		ch *Channel
		d  abi.Direction
	}
	seen := make(map[half]int)
	natives := 0
	for i, c := range s.cases {
		if c.fallback && s.fallback >= 0 {
			return fmt.Errorf("cases %d and %d are both the default: %w", s.fallback, i, ErrInvalid)
		}
		if c.fallback {
			s.fallback = i
		}
		if c.native.Dir != 0 {
			natives++
		}
		if c.ch == nil {
			continue
		}
		h := half{c.ch, c.half}
		if first, dup := seen[h]; dup {
			return fmt.Errorf("cases %d and %d are on the same %v half of target %v: %w",
				first, i, c.half, c.ch.Target(), ErrInvalid)
		}
		seen[h] = i
	}
	if natives > maxNativeCases {
		return fmt.Errorf("%d cases of Go channels, at most %d: %w", natives, maxNativeCases, ErrInvalid)
	}
	return nil
}

// poll tries the cases in random order and returns the index of the one that
// took effect or failed, -1 for none. It stops when ctx ends.
func (s *selection) poll(ctx context.Context, wake chan<- struct{}) (int, error) {
	for _, i := range rand.Perm(len(s.cases)) {
		if ctx.Err() != nil {
			return -1, nil
		}
		if s.cases[i].try == nil {
			continue
		}
		if ok, err := s.cases[i].try(ctx, wake); ok || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// block waits for a case as poll does; -1 means that ctx ended.
func (s *selection) block(ctx context.Context) (int, error) {
	wake := make(chan struct{}, 1) // a token that nobody took yet is enough
	waits, index := s.waits(ctx, wake)
	defer s.disarm(wake)
	for ctx.Err() == nil {
		// A case that is still armed, or has not used its turn, stays as it is.
		if i, err := s.arm(wake); err != nil {
			return i, err
		}
		// A case that became ready before it was armed gets no token.
		if i, err := s.poll(ctx, wake); i >= 0 {
			return i, err
		}
		at, v, ok := reflect.Select(waits)
		if i := index[at]; i >= 0 {
			if taken := s.cases[i].taken; taken != nil {
				taken(v, ok)
			}
			return i, nil
		}
	}
	return -1, nil
}

// waits lists what to sleep on, and for each the index of its case: the end of
// ctx and the wake token have none.
func (s *selection) waits(ctx context.Context, wake chan struct{}) ([]reflect.SelectCase, []int) {
	waits := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(wake)},
	}
	index := []int{-1, -1}
	for i, c := range s.cases {
		if c.native.Dir != 0 {
			waits = append(waits, c.native)
			index = append(index, i)
		}
	}
	return waits, index
}

// arm asks every device channel for a token; the index is that of the case
// whose channel refused.
func (s *selection) arm(wake chan<- struct{}) (int, error) {
	for i, c := range s.cases {
		if c.ch == nil {
			continue
		}
		if err := c.ch.ch.Arm(c.half, wake); err != nil {
			return i, c.ch.fail(opSelect, err)
		}
	}
	return -1, nil
}

// disarm takes back what arm asked for, and hands on what was not used.
func (s *selection) disarm(wake chan<- struct{}) {
	for _, c := range s.cases {
		if c.ch != nil {
			c.ch.ch.Disarm(c.half, wake)
		}
	}
}
