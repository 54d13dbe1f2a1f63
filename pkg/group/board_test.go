package group

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLastStep: who leaves after its last step has all, and so have the others.
func TestLastStep(t *testing.T) {
	for range 100 {
		play(t, "mesh", Options{Size: 3, Algorithm: "isend"}, func(ctx context.Context, g *Group) error {
			return steps(ctx, g, 1, patterns["dense"], 2)
		})
	}
}

// TestLargeIsTheUsersAgain: after a call, whatever its outcome, nobody reads what it
// was given; a step that failed shows nothing of it.
func TestLargeIsTheUsersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := group(t, t.Context(), Options{Size: 3, Algorithm: "isend", Timeout: time.Second})
		data := bytes.Repeat([]byte{1}, 3*smallFrame)
		var all errs
		all.Go(func() error {
			_, err := members[0].Exchange(t.Context(), []Package{{1, data}})
			clear(data) // of the user from here on
			return reason(err, ErrLate, "exchange", 0, 1, 2)
		})
		require.NoError(t, all.Wait())
		in, err := members[1].Exchange(t.Context(), nil)
		require.ErrorIs(t, err, ErrRevoked)
		require.Empty(t, in)
		for _, g := range members {
			all.Go(func() error {
				if _, err := g.Shrink(t.Context()); err != nil {
					return err
				}
				return steps(t.Context(), g, 1, patterns["long"], 3)
			})
		}
		require.NoError(t, all.Wait())
	})
}

// TestLargeIsAwaited: a step with a large package ends when its target has it; an error
// names the target.
func TestLargeIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := NewMesh(2)
		var all errs
		for rank := range 2 {
			all.Go(func() error {
				o := Options{Rank: rank, Size: 2, Algorithm: "isend", Timeout: time.Second, Targets: []int{}, Sources: []int{}}
				if rank == 0 {
					o.Targets = []int{1}
				} else {
					o.Sources = []int{0}
				}
				g, err := Join(t.Context(), mesh, o)
				if err != nil {
					return err
				}
				defer g.Close()
				if rank == 1 {
					in, err := g.Exchange(t.Context(), nil)
					if err == nil && (len(in) != 1 || len(in[0].Data) != 2*smallFrame) {
						err = errors.New("other bytes")
					}
					time.Sleep(time.Hour) // the bubble's clock
					return err
				}
				time.Sleep(time.Second / 2)
				data := make([]byte, 2*smallFrame)
				if _, err := g.Exchange(t.Context(), []Package{{1, data}}); err != nil {
					return err
				}
				_, err = g.Exchange(t.Context(), []Package{{1, data}})
				return reason(err, ErrLate, "exchange", 1, 1)
			})
		}
		require.NoError(t, all.Wait())
	})
}

// TestPostDisagrees: a member whose call only receives gets an error when another exchanges
// in that step.
func TestPostDisagrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := group(t, t.Context(), Options{Size: 3, Algorithm: "isend"})
		var all errs
		for rank, g := range members {
			all.Go(func() error {
				if rank > 0 {
					_, err := g.Exchange(t.Context(), nil)
					if errors.Is(err, ErrRevoked) {
						err = nil
					}
					return err
				}
				err := g.Reduce(t.Context(), 0, make([]byte, 8), func(_, _ []byte) {})
				if !errors.Is(err, ErrDisagree) && !errors.Is(err, ErrRevoked) {
					return fmt.Errorf("it does not disagree: %w", err)
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
	})
}

// TestOneWayLarge: what is large, small and nothing in turn, along edges without a way
// back, over epochs.
func TestOneWayLarge(t *testing.T) {
	const size = 4
	mesh := NewMesh(size)
	ctx := background(t)
	var all errs
	for rank := range size {
		all.Go(func() error {
			o := Options{Rank: rank, Size: size, Algorithm: "isend"}
			o.Targets, o.Sources = around(rank, size)
			g, err := Join(ctx, mesh, o)
			if err != nil {
				return err
			}
			defer g.Close()
			for step := range 60 {
				if err := passSizes(ctx, g, o.Targets, step); err != nil {
					return err
				}
				if step%20 == 19 {
					for _, err := range g.Flush(ctx) {
						if err != nil {
							return err
						}
					}
					if err := g.Barrier(ctx); err != nil { // nobody leaves who is flushed for
						return err
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
}

// passSizes sends bytes that name the sender and the step, and checks what arrives.
func passSizes(ctx context.Context, g *Group, targets []int, step int) error {
	var out []Package
	for i, to := range targets {
		size := []int{0, 1, 100, smallFrame, smallFrame + 1, 5 * smallFrame}[(step+i)%6]
		out = append(out, Package{to, bytes.Repeat([]byte{byte(g.Rank()*60 + step)}, size)})
	}
	in, err := g.Exchange(ctx, out)
	for _, p := range in {
		if want := byte(p.Rank*60 + step); bytes.Count(p.Data, []byte{want}) != len(p.Data) {
			return fmt.Errorf("step %d: other bytes from %d", step, p.Rank)
		}
	}
	return err
}

// TestZeroCopy: who exchanges both ways reads packages where their senders have them, who
// does not has copies. Two buffers in turn are enough for each sender, whatever the others
// do: the race detector watches.
func TestZeroCopy(t *testing.T) {
	const size = 4
	sizes := []int{1, 100, smallFrame, smallFrame + 1, 5 * smallFrame}
	var mu sync.Mutex
	sent := make(map[*byte]bool) // the first bytes of all buffers
	play(t, "mesh", Options{Size: size, Algorithm: "isend", ZeroCopy: true}, func(ctx context.Context, g *Group) error {
		var buffers [2][]byte
		mu.Lock()
		for i := range buffers {
			buffers[i] = make([]byte, slices.Max(sizes))
			sent[&buffers[i][0]] = true
		}
		mu.Unlock()
		if err := g.Barrier(ctx); err != nil {
			return err
		}
		for step := range 60 {
			n := sizes[step%len(sizes)]
			data := buffers[step%2][:n]
			for i := range data {
				data[i] = byte(g.Rank()*60 + step)
			}
			var out []Package
			for to := range size {
				if to != g.Rank() {
					out = append(out, Package{to, data})
				}
			}
			in, err := g.Exchange(ctx, out)
			if err != nil {
				return err
			}
			for _, p := range in {
				want := byte(p.Rank*60 + step)
				if !sent[&p.Data[0]] || cap(p.Data) != n || bytes.Count(p.Data, []byte{want}) != n {
					return fmt.Errorf("step %d: from %d: a copy, or other bytes", step, p.Rank)
				}
			}
			if step%20 == 19 { // after a barrier no buffer is held
				if err := g.Barrier(ctx); err != nil {
					return err
				}
				clear(buffers[0])
				clear(buffers[1])
			}
		}
		return nil
	})
}

// TestZeroCopyOneWay: a target that says nothing back has copies: its sender could not
// know until when it looks.
func TestZeroCopyOneWay(t *testing.T) {
	const size = 4
	mesh := NewMesh(size)
	ctx := background(t)
	var all errs
	for rank := range size {
		all.Go(func() error {
			o := Options{Rank: rank, Size: size, Algorithm: "isend", ZeroCopy: true}
			o.Targets, o.Sources = []int{(rank + 1) % size}, []int{(rank + size - 1) % size}
			g, err := Join(ctx, mesh, o)
			if err != nil {
				return err
			}
			defer g.Close()
			data := make([]byte, 3*smallFrame)
			for step := range 40 {
				own := data[:len(data)-step%2*(len(data)-100)] // large and small in turn
				for i := range own {
					own[i] = byte(step)
				}
				in, err := g.Exchange(ctx, []Package{{o.Targets[0], own}})
				clear(data) // the member's again
				if err != nil || bytes.Count(in[0].Data, []byte{byte(step)}) != len(own) {
					return fmt.Errorf("step %d: other bytes: %w", step, err)
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
}
