package group

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// spike is the event of the report: 16 bytes.
type spike struct {
	GID  uint64
	Time float64
}

func TestTyped(t *testing.T) {
	for _, a := range Algorithms() {
		o := options(a, 3)
		o.EventSize = 16
		play(t, "mesh", o, func(ctx context.Context, g *Group) error {
			for step := range 5 {
				next := (g.Rank() + 1) % 3
				in, err := Exchange(ctx, g, []Batch[spike]{{next, []spike{{uint64(g.Rank()), float64(step)}, {7, 0.5}}}})
				if err != nil {
					return err
				}
				from := (g.Rank() + 2) % 3
				want := []Batch[spike]{{from, []spike{{uint64(from), float64(step)}, {7, 0.5}}}}
				if fmt.Sprint(in) != fmt.Sprint(want) {
					return fmt.Errorf("%v, not %v", in, want)
				}
			}
			return nil
		})
	}
}

func TestTypedRefuses(t *testing.T) {
	ctx := background(t)
	g := group(t, ctx, Options{Size: 1, EventSize: 8})[0]
	_, err := Exchange[*int](ctx, g, nil)
	require.NoError(t, reason(err, ErrOptions, "exchange", 0))
	_, err = Exchange[struct{}](ctx, g, nil)
	require.NoError(t, reason(err, ErrOptions, "exchange", 0))
	_, err = Exchange[struct{ A [2]string }](ctx, g, nil)
	require.NoError(t, reason(err, ErrOptions, "exchange", 0))
	_, err = Exchange[uint32](ctx, g, nil)
	require.NoError(t, reason(err, ErrEventSize, "exchange", 0))
	_, err = Exchange[[2]int32](ctx, g, nil)
	require.NoError(t, err)
	play(t, "mesh", Options{Size: 2}, func(ctx context.Context, g *Group) error {
		if g.Rank() == 0 {
			_, err := g.Exchange(ctx, []Package{{1, make([]byte, 9)}})
			return err
		}
		_, err := Exchange[uint64](ctx, g, nil)
		if err := reason(err, ErrEventSize, "exchange", 0, 0); err != nil {
			return err
		}
		return nil
	})
	// Bytes at an address where no event may begin are copied.
	raw := make([]byte, 17)
	raw[1] = 5
	require.Equal(t, []uint64{5, 0}, eventsOf[uint64](g, raw[1:]))
}
