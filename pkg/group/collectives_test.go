package group

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCollectives(t *testing.T) {
	for transport := range transports {
		for _, size := range []int{1, 2, 3, 5, 8} {
			play(t, transport, Options{Size: size}, func(ctx context.Context, g *Group) error {
				for round := range 5 {
					own := bytes.Repeat([]byte{byte(g.Rank())}, 100*(g.Rank()+round)%300)
					all, err := g.Allgatherv(ctx, own)
					if err != nil {
						return err
					}
					for r, b := range all {
						if !bytes.Equal(b, bytes.Repeat([]byte{byte(r)}, 100*(r+round)%300)) {
							return fmt.Errorf("%d bytes of rank %d", len(b), r)
						}
					}
					all, err = g.Allgather(ctx, []byte{byte(g.Rank()), byte(round)})
					if err != nil {
						return err
					}
					for r, b := range all {
						if !bytes.Equal(b, []byte{byte(r), byte(round)}) {
							return fmt.Errorf("%v of rank %d", b, r)
						}
					}
					acc := binary.LittleEndian.AppendUint32(nil, uint32(g.Rank()+1))
					err = g.Reduce(ctx, round%size, acc, func(acc, in []byte) {
						sum := binary.LittleEndian.Uint32(acc) + binary.LittleEndian.Uint32(in)
						binary.LittleEndian.PutUint32(acc, sum)
					})
					if err != nil {
						return err
					}
					if got := int(binary.LittleEndian.Uint32(acc)); g.Rank() == round%size && got != size*(size+1)/2 {
						return fmt.Errorf("sum %d", got)
					}
				}
				return nil
			})
		}
	}
}

// TestBarrier: no member leaves before all have arrived.
func TestBarrier(t *testing.T) {
	var came atomic.Int64
	play(t, "mesh", Options{Size: 7}, func(ctx context.Context, g *Group) error {
		for round := range int64(20) {
			came.Add(1)
			if err := g.Barrier(ctx); err != nil {
				return err
			}
			if n := came.Load(); n < 7*(round+1) {
				return fmt.Errorf("round %d: %d came", round, n)
			}
		}
		return nil
	})
}

// TestGatherDisagree: each member that sees different sizes reports them.
func TestGatherDisagree(t *testing.T) {
	for _, call := range []func(context.Context, *Group) error{
		func(ctx context.Context, g *Group) error {
			_, err := g.Allgather(ctx, make([]byte, 1+g.Rank()/2))
			return err
		},
		func(ctx context.Context, g *Group) error {
			return g.Reduce(ctx, 0, make([]byte, 1+g.Rank()/2), func(_, _ []byte) {})
		},
	} {
		var told atomic.Int64
		play(t, "mesh", Options{Size: 3}, func(ctx context.Context, g *Group) error {
			err := call(ctx, g)
			if errors.Is(err, ErrDisagree) {
				told.Add(1)
			}
			if err != nil && !errors.Is(err, ErrDisagree) && !errors.Is(err, ErrRevoked) && !errors.Is(err, ErrGone) {
				return err
			}
			return nil
		})
		require.Positive(t, told.Load())
	}
}
