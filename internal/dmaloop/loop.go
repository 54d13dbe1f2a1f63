package dmaloop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Variant is how the transfers follow each other.
type Variant int

// The variants of the slides.
const (
	// Synchronous: one transfer at a time, there, then back.
	Synchronous Variant = iota
	// Overlapped: blocking calls on several channels, each with a goroutine for either
	// direction.
	Overlapped
	// Futures: calls that continue without their caller, of one goroutine.
	Futures
	// Variants is their number.
	Variants
)

var variantNames = [Variants]string{"synchronous", "overlapped", "futures"}

// String returns the name of the variant.
func (v Variant) String() string { return variantNames[v] }

// Options say what is moved.
type Options struct {
	// Size of a transfer in bytes; a multiple of 8, at least 8.
	Size int
	// Transfers is their number, in each direction.
	Transfers int
	// Depth is how many transfers are under way at once, where they overlap.
	Depth int
}

// Result is what a variant came to. Every byte was compared.
type Result struct {
	Variant   Variant
	Transfers int
	Bytes     int64 // each way
	Took      time.Duration
}

// Rate is the bytes of both ways for each second.
func (r Result) Rate() float64 { return 2 * float64(r.Bytes) / max(r.Took.Seconds(), 1e-9) }

// MismatchError is a word that did not come back as it was sent.
type MismatchError struct {
	Transfer  int // from 0
	Offset    int // in bytes
	Want, Got uint64
}

// Error names the place.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("transfer %d came back changed at byte %d: %#016x, not %#016x", e.Transfer, e.Offset, e.Got, e.Want)
}

// Run moves what o asks for through the device's loopback program and compares it.
func Run(ctx context.Context, dev *nfcomms.Device, v Variant, o Options) (r Result, err error) {
	switch {
	case o.Size < 8 || o.Size%8 != 0:
		return r, fmt.Errorf("transfers of %d bytes: not a multiple of 8: %w", o.Size, nfcomms.ErrInvalid)
	case o.Transfers < 1 || o.Depth < 1:
		return r, fmt.Errorf("%d transfers, %d at once: at least 1: %w", o.Transfers, o.Depth, nfcomms.ErrInvalid)
	}
	if v == Synchronous {
		o.Depth = 1
	}
	o.Depth = min(o.Depth, o.Transfers)
	p, err := dev.Run(ctx, nfcomms.Program{Name: "loopback", Targets: o.Depth})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	l := loop{Options: o, ports: p.Channels}
	start := time.Now()
	err = map[Variant]func(context.Context) error{
		Synchronous: l.synchronous, Overlapped: l.overlapped, Futures: l.futures,
	}[v](ctx)
	return Result{v, o.Transfers, int64(o.Transfers) * int64(o.Size), time.Since(start)}, err
}

// loop is a run. Transfer n goes through port n % Depth.
type loop struct {
	Options
	ports []*nfcomms.Channel
}

// words makes memory for a transfer.
func (l *loop) words() []uint64 { return make([]uint64, l.Size/8) }

// fill writes the sequence numbers of transfer n.
func (l *loop) fill(words []uint64, n int) {
	first := uint64(n) * uint64(len(words))
	for i := range words {
		words[i] = first + uint64(i)
	}
}

// check compares the sequence numbers of transfer n, and forgets them.
func (l *loop) check(words []uint64, n int) error {
	first := uint64(n) * uint64(len(words))
	for i, got := range words {
		if want := first + uint64(i); got != want {
			return &MismatchError{n, 8 * i, want, got}
		}
	}
	clear(words) // a device that writes nothing is found the next time
	return nil
}

// synchronous: one transfer at a time.
func (l *loop) synchronous(ctx context.Context) error {
	out, in := l.words(), l.words()
	for n := range l.Transfers {
		l.fill(out, n)
		if err := l.ports[0].SendInd(ctx, out); err != nil {
			return err
		}
		if _, err := l.ports[0].ReceiveInd(ctx, in); err != nil {
			return err
		}
		if err := l.check(in, n); err != nil {
			return err
		}
	}
	return nil
}

// overlapped: blocking calls, a goroutine for each direction of each port.
func (l *loop) overlapped(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for first, port := range l.ports {
		g.Go(func() error {
			out := l.words()
			for n := first; n < l.Transfers; n += l.Depth {
				l.fill(out, n)
				if err := port.SendInd(ctx, out); err != nil {
					return err
				}
			}
			return nil
		})
		g.Go(func() error {
			in := l.words()
			for n := first; n < l.Transfers; n += l.Depth {
				if _, err := port.ReceiveInd(ctx, in); err != nil {
					return err
				}
				if err := l.check(in, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// place is the memory of a transfer under way, and its futures.
type place struct {
	out, in     []uint64
	there, back *nfcomms.Future
}

// futures: one goroutine that starts what it can and waits for the oldest.
func (l *loop) futures(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	places := make([]place, l.Depth)
	defer func() { // the memory is in use until they have ended
		cancel()
		for _, p := range places {
			_, _ = wait(p.there), wait(p.back)
		}
	}()
	for n := range l.Transfers + l.Depth {
		p := &places[n%l.Depth]
		if n >= l.Depth {
			if err := wait(p.there); err != nil {
				return err // nothing will return
			}
			if err := wait(p.back); err != nil {
				return err
			}
			if err := l.check(p.in, n-l.Depth); err != nil {
				return err
			}
		} else {
			p.out, p.in = l.words(), l.words()
		}
		if n < l.Transfers {
			l.fill(p.out, n)
			port := l.ports[n%l.Depth]
			p.there, p.back = nfcomms.SendIndCase(port, p.out).Start(ctx), nfcomms.ReceiveIndCase(port, p.in).Start(ctx)
		} else {
			p.there, p.back = nil, nil
		}
	}
	return nil
}

// wait returns how a future ended; nil for none.
func wait(f *nfcomms.Future) error {
	if f == nil {
		return nil
	}
	_, err := f.Wait(context.Background())
	return err
}
