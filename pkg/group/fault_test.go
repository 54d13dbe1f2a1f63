package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// reason checks that err is an *Error of an operation with a reason, about ranks.
func reason(err, is error, op string, step uint64, ranks ...int) error {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return fmt.Errorf("no *Error: %w", err)
	case !errors.Is(err, is):
		return fmt.Errorf("not %q: %w", is, err)
	case e.Op != op || e.Step != step || !slices.Equal(e.Ranks, ranks):
		return fmt.Errorf("not of %s in step %d about %v: %w", op, step, ranks, err)
	}
	return nil
}

// TestBadInput: arguments that make no sense change nothing.
func TestBadInput(t *testing.T) {
	o := Options{Size: 4, Algorithm: "isend", EventSize: 8, Targets: []int{}, Sources: []int{}}
	ctx := background(t)
	mesh := NewMesh(4)
	var all errs
	for rank := range 4 {
		all.Go(func() error {
			o := o
			o.Rank = rank
			if rank == 0 {
				o.Targets = []int{1, 2}
			} else if rank < 3 {
				o.Sources = []int{0}
			}
			g, err := Join(ctx, mesh, o)
			if err != nil || rank > 0 {
				return err
			}
			for _, c := range []struct {
				out  []Package
				is   error
				rank int
			}{
				{[]Package{{0, make([]byte, 8)}}, ErrRank, 0},
				{[]Package{{4, nil}}, ErrRank, 4},
				{[]Package{{-1, nil}}, ErrRank, -1},
				{[]Package{{3, make([]byte, 8)}}, ErrRank, 3},
				{[]Package{{1, nil}, {2, nil}, {1, make([]byte, 8)}}, ErrRank, 1},
				{[]Package{{2, make([]byte, 9)}}, ErrEventSize, 2},
			} {
				_, err := g.Exchange(ctx, c.out)
				if err := reason(err, c.is, "exchange", 0, c.rank); err != nil {
					return err
				}
			}
			if err := reason(g.Reduce(ctx, 9, nil, nil), ErrRank, "reduce", 0, 9); err != nil {
				return err
			}
			for range 2 { // nobody is hurt
				if _, err := g.Exchange(ctx, []Package{{1, make([]byte, 8)}, {2, nil}}); err != nil {
					return err
				}
			}
			if err := g.Close(); err != nil {
				return err
			}
			_, err = g.Exchange(ctx, nil)
			return reason(err, ErrClosed, "exchange", 2)
		})
	}
	require.NoError(t, all.Wait())
}

// TestJoinRefuses: options that are invalid at one member, and options that do not fit those of
// another, in either order of joining.
func TestJoinRefuses(t *testing.T) {
	ctx := background(t)
	for _, o := range []Options{
		{Size: 0}, {Size: maxSize + 1}, {Size: 2, Rank: 2}, {Size: 2, Rank: -1}, {Size: 2, EventSize: -1},
		{Size: 2, Algorithm: "none"}, {Size: 2, Algorithm: "isend-l"}, {Size: 2, Algorithm: "isend", Handler: func(Package) {}},
		{Size: 2, Targets: []int{0}}, {Size: 2, Targets: []int{2}}, {Size: 3, Sources: []int{1, 1}},
	} {
		_, err := Join(ctx, NewMesh(max(o.Size, 0)), o)
		var e *Error
		require.ErrorAs(t, err, &e, "%+v", o)
	}
	_, err := Join(ctx, NewMesh(3), Options{Size: 2})
	require.ErrorIs(t, err, ErrDisagree)

	for what, change := range map[string]func(*Options){
		"algorithm":  func(o *Options) { o.Algorithm = "cpex" },
		"event size": func(o *Options) { o.EventSize = 4 },
		"buffer":     func(o *Options) { o.Buffer = 9 },
		"zero copy":  func(o *Options) { o.ZeroCopy = true },
		"edges":      func(o *Options) { o.Targets, o.Sources = []int{0}, []int{0, 2} },
		"size":       func(o *Options) { o.Size = 4 },
	} {
		for _, transport := range []string{"mesh", "rings"} {
			if what == "size" && transport == "mesh" {
				continue // the mesh itself refuses
			}
			connect := transports[transport](t, 3)
			var all errs
			for rank := range 3 {
				all.Go(func() error {
					o := Options{Rank: rank, Size: 3, Algorithm: "isend", JoinTimeout: patience}
					if rank == 1 {
						change(&o)
					}
					g, err := Join(ctx, connect(rank), o)
					if err == nil {
						return errors.Join(errors.New("it joined"), g.Close())
					}
					if !errors.Is(err, ErrDisagree) && !errors.Is(err, ErrRevoked) && !errors.Is(err, ErrGone) {
						return err
					}
					return nil
				})
			}
			require.NoError(t, all.Wait(), "%s over %s", what, transport)
		}
	}
}

// TestErrorsAreOneLine: also those with several reasons.
func TestErrorsAreOneLine(t *testing.T) {
	err := &Error{Op: "close", Rank: 1, Err: errors.Join(ErrGone, ErrLate)}
	require.EqualError(t, err, "group: close: rank 1: step 0: member is gone; step is late")
}

// TestJoinMissing: the ranks that do not join are named by each member, whichever waits no longer
// first; a rank that is there twice is refused.
func TestJoinMissing(t *testing.T) {
	for first := range 5 {
		synctest.Test(t, func(t *testing.T) {
			mesh := NewMesh(5)
			var all errs
			for _, rank := range []int{0, 3, 4} {
				all.Go(func() error {
					o := Options{Rank: rank, Size: 5}
					if rank == first {
						o.JoinTimeout = time.Second
					}
					_, err := Join(t.Context(), mesh, o)
					return reason(err, ErrLate, "join", 0, 1, 2)
				})
			}
			synctest.Wait()
			_, err := Join(t.Context(), mesh, Options{Rank: 3, Size: 5})
			require.ErrorIs(t, err, ErrRankTaken)
			require.NoError(t, all.Wait())
		})
	}
}

// TestJoinMissedByOne: members that another one gives up name the rank that this one missed, and no
// rank outside of the group that a hostile member may name.
func TestJoinMissedByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh := NewMesh(4)
		bad, err := mesh.connect(0, 4)
		require.NoError(t, err)
		var all errs
		for rank := 1; rank < 3; rank++ {
			all.Go(func() error {
				_, err := Join(t.Context(), mesh, Options{Rank: rank, Size: 4})
				return reason(err, ErrLate, "join", 0, 3)
			})
		}
		synctest.Wait()
		for rank := 1; rank < 3; rank++ {
			_, err := bad.TrySend(rank, frameHeader{Op: opRevoke}, []byte{3, 0, 0, 0, 3, 0, 0, 0, 255, 255, 255, 255, 4, 0, 0, 0, 0, 0, 0, 0, 9})
			require.NoError(t, err)
		}
		require.NoError(t, all.Wait())
		require.NoError(t, bad.Close())
	})
}

// group joins all members and returns them; they are closed at the end.
func group(t *testing.T, ctx context.Context, o Options) []*Group {
	t.Helper()
	mesh := NewMesh(o.Size)
	members := make([]*Group, o.Size)
	var all errs
	for rank := range members {
		all.Go(func() (err error) {
			o := o
			o.Rank = rank
			members[rank], err = Join(ctx, mesh, o)
			return err
		})
	}
	require.NoError(t, all.Wait())
	t.Cleanup(func() {
		for _, g := range members {
			require.NoError(t, g.Close())
		}
	})
	return members
}

// TestLateStep: a step in which members are late ends at all others with their
// ranks, by Options.Timeout and by the context alike; and Shrink continues.
func TestLateStep(t *testing.T) {
	for _, byContext := range []bool{false, true} {
		for _, a := range Algorithms() {
			synctest.Test(t, func(t *testing.T) {
				o := options(a, 5)
				if !byContext {
					o.Timeout = 20 * time.Millisecond
				}
				members := group(t, t.Context(), o)
				var all errs
				for rank, g := range members {
					all.Go(func() error {
						ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
						if byContext {
							cancel()
							ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
						}
						defer cancel()
						if rank%2 == 1 {
							time.Sleep(time.Second) // the bubble's clock
							ctx = t.Context()
						}
						_, err := g.Exchange(ctx, nil)
						var e *Error
						switch {
						case !errors.As(err, &e):
							return fmt.Errorf("rank %d: %w", rank, err)
						case errors.Is(err, ErrLate):
							if !e.Timeout() || slices.Contains(e.Ranks, rank) || len(e.Ranks) == 0 {
								return fmt.Errorf("rank %d names %v", rank, e.Ranks)
							}
						case !errors.Is(err, ErrRevoked):
							return err
						}
						if _, err := g.Exchange(ctx, nil); !errors.Is(err, ErrBroken) && !errors.Is(err, ErrCanceled) {
							return fmt.Errorf("it goes on: %w", err)
						}
						if _, err := g.Shrink(t.Context()); err != nil {
							return err
						}
						if g.Size() != 5 || g.Rank() != rank {
							return fmt.Errorf("rank %d of %d", g.Rank(), g.Size())
						}
						time.Sleep(time.Duration(rank)) // not all at once
						return steps(t.Context(), g, 3, patterns["dense"], 3)
					})
				}
				require.NoError(t, all.Wait(), a.Name)
			})
		}
	}
}

// TestLateNames: those who have given their package are not named.
func TestLateNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := group(t, t.Context(), Options{Size: 4, Algorithm: "isend", Timeout: time.Second})
		var all errs
		for _, rank := range []int{0, 2} {
			all.Go(func() error {
				_, err := members[rank].Exchange(t.Context(), nil)
				if errors.Is(err, ErrRevoked) {
					return nil // the other one was first
				}
				return reason(err, ErrLate, "exchange", 0, 1, 3)
			})
		}
		require.NoError(t, all.Wait())
	})
}

// TestDeath: a member that ends in the midst of a step ends it at all others, who
// continue without it.
func TestDeath(t *testing.T) {
	for _, a := range Algorithms() {
		mesh := NewMesh(5)
		ctx := background(t)
		var all errs
		for rank := range 5 {
			all.Go(func() error {
				o := options(a, 5)
				o.Rank = rank
				g, err := Join(ctx, mesh, o)
				if err != nil {
					return err
				}
				defer g.Close()
				if rank == 1 || rank == 3 {
					err := steps(ctx, g, 1, patterns["dense"], 3+rank)
					mesh.members[rank].leave(ErrGone) // as if its process had died
					if errors.Is(err, ErrGone) || errors.Is(err, ErrRevoked) {
						err = nil
					}
					return err
				}
				for g.Size() > 3 {
					err := steps(ctx, g, 1, patterns["dense"], 10)
					if !errors.Is(err, ErrGone) && !errors.Is(err, ErrRevoked) {
						return fmt.Errorf("rank %d: %w", rank, err)
					}
					if _, err = g.Shrink(ctx); err != nil {
						return err
					}
				}
				if !slices.Equal(g.Members(), []int{0, 2, 4}) || g.Rank() != rank/2 {
					return fmt.Errorf("rank %d of %v", g.Rank(), g.Members())
				}
				return steps(ctx, g, 2, patterns["dense"], 5)
			})
		}
		require.NoError(t, all.Wait(), a.Name)
	}
}

// TestLeave: who has all it needs may leave; others who need nothing of it any more
// do not mind, those who do get an error.
func TestLeave(t *testing.T) {
	for transport := range transports {
		for _, a := range Algorithms() {
			play(t, transport, options(a, 4), func(ctx context.Context, g *Group) error {
				if err := steps(ctx, g, 1, patterns["dense"], 5); err != nil || g.Rank() == 2 {
					return err
				}
				_, err := g.Exchange(ctx, nil)
				if errors.Is(err, ErrRevoked) || errors.Is(err, ErrGone) && err.(*Error).Step == 5 {
					return nil // the others leave as well, once they have the error
				}
				return fmt.Errorf("rank %d: %w", g.Rank(), err)
			})
		}
	}
}

// TestCloseEndsCall: Close by another goroutine ends a call that waits.
func TestCloseEndsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := group(t, t.Context(), Options{Size: 2})
		ended := make(chan error)
		go func() {
			_, err := members[0].Exchange(t.Context(), nil)
			ended <- err
		}()
		synctest.Wait()
		_, err := members[0].Exchange(t.Context(), nil)
		require.NoError(t, reason(err, ErrBusy, "exchange", 0))
		require.NoError(t, members[0].Close())
		require.NoError(t, reason(<-ended, ErrClosed, "exchange", 0))
		_, err = members[1].Exchange(t.Context(), nil)
		require.Error(t, err)
	})
}

// TestDisagree: members that call something else in a step learn what the
// other does.
func TestDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := group(t, t.Context(), Options{Size: 2, Algorithm: "isend"})
		var all errs
		all.Go(func() error { return members[0].Barrier(t.Context()) })
		all.Go(func() error {
			_, err := members[1].Exchange(t.Context(), nil)
			return err
		})
		err := all.Wait()
		require.True(t, errors.Is(err, ErrDisagree) || errors.Is(err, ErrRevoked), err)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Len(t, e.Ranks, 1)
	})
}

// TestLies: a member cannot rely on what another declares of its packages: others end with an error
// that names the liar, or with the error of the first member that failed.
func TestLies(t *testing.T) {
	number := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	entry := func(to, size uint64) []byte { return append(number(to), number(size)...) }
	for what, lie := range map[string]struct {
		algorithm func(*exchangeStep) error
		frames    [][]byte
		tag       uint16
	}{
		"a share of all memory":    {allgather, [][]byte{number(1 << 62)}, 0},
		"a negative share":         {chunks, [][]byte{number(1 << 63)}, 0},
		"a share past the buffer":  {fixedBuffer, [][]byte{append(number(1<<40), make([]byte, defaultBuffer-8)...)}, 0},
		"another number of bytes":  {allgather, [][]byte{number(32), make([]byte, 31)}, 0},
		"a share that ends early":  {allgather, [][]byte{number(8), make([]byte, 8)}, 0},
		"a package past its share": {allgather, [][]byte{number(16), entry(0, 1<<63)}, 0},
		"a block past its frame":   {new(bruck).Exchange, [][]byte{append(make([]byte, 8), number(1<<63)...)}, 0},
		"a block for nobody":       {new(bruck).Exchange, [][]byte{append(number(1<<32-1), number(0)...)}, 0},
		"a load that is no number": {
			func(s *exchangeStep) error { _, err := means(s, []float64{1}); return err }, [][]byte{number(math.Float64bits(math.NaN()))}, autoTag,
		},
		"a time before all time": {
			func(s *exchangeStep) error { _, err := means(s, []float64{1}); return err }, [][]byte{number(math.Float64bits(-1))}, autoTag,
		},
		"a frame that is half a block": {new(bruck).Exchange, [][]byte{make([]byte, 9)}, 0},
	} {
		t.Run(what, func(t *testing.T) {
			register(Algorithm{Name: "lie", start: stateless(func(s *exchangeStep) error {
				if s.Rank() == 0 {
					return lie.algorithm(s)
				}
				var f frame
				for phase, data := range lie.frames {
					tag := lie.tag + uint16(phase)
					s.start(0, tag, 0, data)
					if err := s.receive(0, tag, &f); err != nil {
						return err
					}
					s.Release(&f)
				}
				return s.takeAny() // until the other one gives up
			})})
			defer func() { registry.all = registry.all[:len(registry.all)-1] }()
			play(t, "mesh", Options{Size: 2, Algorithm: "lie"}, func(ctx context.Context, g *Group) error {
				_, err := g.Exchange(ctx, nil)
				if g.Rank() == 0 {
					return reason(err, ErrDisagree, "exchange", 0, 1)
				}
				return reason(err, ErrRevoked, "exchange", 0, 0)
			})
		})
	}
}

// TestShrinkWaits: a member that does not arrive is named.
func TestShrinkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := group(t, t.Context(), Options{Size: 3, JoinTimeout: time.Second})
		var all errs
		for _, g := range members[:2] {
			all.Go(func() error {
				_, err := g.Shrink(t.Context())
				return reason(err, ErrLate, "shrink", 0, 2)
			})
		}
		require.NoError(t, all.Wait())
		for _, g := range members {
			all.Go(func() error {
				finished, err := g.Shrink(t.Context())
				if err == nil && !slices.Equal(finished, []uint64{0, 0, 0}) {
					err = fmt.Errorf("finished %v", finished)
				}
				if err == nil {
					err = g.Barrier(t.Context())
				}
				return err
			})
		}
		require.NoError(t, all.Wait())
	})
}

// TestShrinkOnce: a member that fails again at once, while others still agree, has them
// finish the agreement that it has finished: calls of all members match, one by one.
func TestShrinkOnce(t *testing.T) {
	for transport := range transports {
		play(t, transport, Options{Size: 4, Algorithm: "isend"}, func(ctx context.Context, g *Group) error {
			for round := range 300 {
				if g.Rank() != round%4 { // who gives this step up without a word
					_, err := g.Exchange(ctx, nil)
					var e *Error
					if !errors.As(err, &e) || !errors.Is(err, ErrRevoked) {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				if _, err := g.Shrink(ctx); err != nil {
					return fmt.Errorf("round %d: %w", round, err)
				}
				if g.epoch != uint32(round)+2 {
					return fmt.Errorf("epoch %d after round %d", g.epoch, round)
				}
			}
			return g.Barrier(ctx)
		})
	}
}

// TestShrinkAfterFlush: a member whose flush had ended is an epoch further than the others,
// and one that knows of it proposes that, too: nobody has finished the epoch between. Their
// proposal may be for an earlier step than one of theirs.
func TestShrinkAfterFlush(t *testing.T) {
	exchange, second, third := frameHeader{Epoch: 2}, frameHeader{Epoch: 2, Op: opPropose}, frameHeader{Epoch: 3, Op: opPropose}
	frames := [][]frameHeader{1: {exchange, second, third}, 2: {exchange, third}}
	for _, transport := range []string{"mesh", "rings"} {
		done := make(chan bool)
		play(t, transport, Options{Size: len(frames)}, func(ctx context.Context, g *Group) error {
			for _, h := range frames[g.Rank()] {
				mustSend(t, g.link, 0, h, []byte{0}, idle)
			}
			if g.Rank() > 0 {
				<-done
				return nil
			}
			defer close(done)
			_, err := g.Shrink(ctx)
			if err == nil && g.epoch != third.Epoch {
				err = fmt.Errorf("epoch %d", g.epoch)
			}
			return err
		})
	}
}

// listed is a context that cannot be compared.
type listed struct {
	context.Context
	_ []int
}

func TestAnyContext(t *testing.T) {
	play(t, "mesh", Options{Size: 2}, func(ctx context.Context, g *Group) error {
		return steps(listed{Context: ctx}, g, 1, patterns["dense"], 3)
	})
}
