package group

import (
	"errors"
	"io"
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRelayedTooLarge: a frame whose size does not fit its header fails the step at its
// sender, which says so, and nothing of it is sent.
func TestRelayedTooLarge(t *testing.T) {
	size := uint64(math.MaxUint32) + 1
	// Nobody touches these pages, so there are none.
	huge, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|syscall.MAP_NORESERVE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(huge)) }()
	ctx := background(t)
	transport := NewRelayed(2, []io.ReadWriteCloser{newEcho()})
	defer func() { require.NoError(t, transport.Close()) }()
	var all errs
	for rank := range 2 {
		all.Go(func() error {
			g, err := Join(ctx, transport, Options{Rank: rank, Size: 2, Algorithm: "isend"})
			if err != nil {
				return err
			}
			defer g.Close()
			want, about, out := ErrTooLarge, 1, []Package{{1, huge}}
			if rank == 1 {
				want, about, out = ErrRevoked, 0, nil
			}
			_, err = g.Exchange(ctx, out)
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, want) || len(e.Ranks) != 1 || e.Ranks[0] != about {
				return errors.Join(errors.New("not refused"), err)
			}
			if _, err = g.Shrink(ctx); err != nil {
				return err
			}
			return steps(ctx, g, 1, patterns["dense"], 3)
		})
	}
	require.NoError(t, all.Wait())
}
