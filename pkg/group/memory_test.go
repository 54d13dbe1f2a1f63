//go:build linux

package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// TestBadMemory: a member whose memory cannot be reached gets the error before the step begins, and
// may give other memory. The others wait for it as for one that is late.
func TestBadMemory(t *testing.T) {
	for name, transport := range transports {
		t.Run(name, func(t *testing.T) {
			const size = 3
			connect := transport(t, size)
			bad := map[int][]byte{}
			for _, n := range []int{1, 400, 100_000} {
				bad[n] = bridgetest.BadMemory(t, "truncated file", n, 0)
			}
			readOnly := bridgetest.BadMemory(t, "read only", 8, 0)
			var all errgroup.Group
			for rank := range size {
				all.Go(func() error {
					g, err := Join(t.Context(), connect(rank), Options{Rank: rank, Size: size})
					if err != nil {
						return err
					}
					defer g.Close()
					for n, mem := range bad {
						if rank == 1 {
							_, err := g.Exchange(t.Context(), []Package{{0, mem}})
							assert.ErrorIs(t, err, ErrMemory)
							_, err = g.Allgather(t.Context(), mem)
							assert.ErrorIs(t, err, ErrMemory)
							_, err = g.Allgatherv(t.Context(), mem)
							assert.ErrorIs(t, err, ErrMemory)
							assert.ErrorIs(t, g.Reduce(t.Context(), 0, readOnly, func(_, _ []byte) {}), ErrMemory)
						}
						in, err := g.Exchange(t.Context(), []Package{{(rank + 1) % size, make([]byte, n)}})
						if err != nil {
							return err
						}
						assert.Len(t, in, 1)
						if _, err := g.Allgather(t.Context(), make([]byte, 8)); err != nil {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, all.Wait())
		})
	}
}
