package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRelayedAlgorithms: each hands over the same through relays.
func TestRelayedAlgorithms(t *testing.T) {
	for _, a := range Algorithms() {
		for _, p := range []string{"dense", "long"} {
			play(t, "relayed", options(a, 5), func(ctx context.Context, g *Group) error {
				return steps(ctx, g, 1, patterns[p], 3)
			})
		}
	}
}

// TestRelayFails: members behind a relay that fails are lost, and get the error; the others
// continue.
func TestRelayFails(t *testing.T) {
	ctx := background(t)
	relays := []io.ReadWriteCloser{newEcho(), newEcho()}
	transport := NewRelayed(4, relays)
	defer func() { require.NoError(t, transport.Close()) }()
	var all errs
	for rank := range 4 {
		all.Go(func() error {
			g, err := Join(ctx, transport, Options{Rank: rank, Size: 4, Algorithm: "isend"})
			if err != nil {
				return err
			}
			defer g.Close()
			err = steps(ctx, g, 1, patterns["dense"], 3)
			if rank == 3 {
				_ = relays[1].Close() // with bytes still in it: another may be a step behind
			}
			for err == nil {
				_, err = g.Exchange(ctx, nil)
			}
			if !errors.Is(err, ErrGone) && !errors.Is(err, ErrRevoked) {
				return err
			}
			_, err = g.Shrink(ctx)
			if rank%2 == 1 {
				if !errors.Is(err, ErrGone) {
					return fmt.Errorf("rank %d goes on: %w", rank, err)
				}
				return nil
			}
			if err != nil || !slices.Equal(g.Members(), []int{0, 2}) {
				return fmt.Errorf("rank %d of %v: %w", rank, g.Members(), err)
			}
			return steps(ctx, g, 2, patterns["dense"], 3)
		})
	}
	require.NoError(t, all.Wait())
}

// TestRelayIsWrong: a relay that gives back something else has failed.
func TestRelayIsWrong(t *testing.T) {
	relays := []io.ReadWriteCloser{newEcho()}
	transport := NewRelayed(1, relays)
	l, err := transport.connect(0, 1)
	require.NoError(t, err)
	wrong := make([]byte, relayedHeader)
	wrong[18] = 1 // to a rank that is not there
	_, _ = relays[0].Write(wrong)
	f := mustReceive(t, l)
	require.Equal(t, ErrGone, f.End)
	l.Release(&f)
	require.NoError(t, l.Close())
	require.NoError(t, transport.Close())
}
