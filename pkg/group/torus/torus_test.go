//go:build cgo

package torus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is a watchdog, also of a machine where many wait for each processor.
const patience = 5 * time.Minute

func device(t *testing.T, address string) (context.Context, *nfcomms.Device) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	dev, err := nfcomms.Open(ctx, address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return ctx, dev
}

// TestMembersOnNodes: more members than nodes exchange nothing, what one message has and
// what several transfers have; twice, as Close gives the nodes back.
func TestMembersOnNodes(t *testing.T) {
	ctx, dev := device(t, "sim:?torus=2x2x1")
	for _, algorithm := range []string{"isend", "bruck"} {
		const members = 6
		tr, err := Open(ctx, dev, members)
		require.NoError(t, err)
		var all errgroup.Group
		for rank := range members {
			all.Go(func() error {
				g, err := group.Join(ctx, tr, group.Options{Rank: rank, Size: members, Algorithm: algorithm})
				if err != nil {
					return err
				}
				defer g.Close()
				for step, size := range []int{0, 16, 300_000, 1} {
					if err := pass(ctx, g, step, size); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
		require.NoError(t, tr.Close())
	}
}

// TestNoAllocation: a step over nodes allocates nothing once memory is warm, whether
// its frames are messages or transfers. Where a node had no processor for too long and
// is lost, the steps are measured again.
func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		return // it allocates itself
	}
	for _, size := range []int{16, 3000} {
		err := allocations(t, size)
		for errors.Is(err, group.ErrGone) {
			t.Log(err)
			err = allocations(t, size)
		}
		require.NoError(t, err)
	}
}

// allocations returns an error if a step with packages of a size allocates.
func allocations(t *testing.T, size int) error {
	ctx, dev := device(t, "sim:?torus=2x1x1")
	tr, err := Open(ctx, dev, 2)
	require.NoError(t, err)
	var all errgroup.Group
	for rank := range 2 {
		all.Go(func() error {
			g, err := group.Join(ctx, tr, group.Options{Rank: rank, Size: 2, Algorithm: "isend"})
			if err != nil {
				return err
			}
			defer g.Close()
			out := []group.Package{{Rank: 1 - rank, Data: make([]byte, size)}}
			step := func() {
				if err == nil {
					_, err = g.Exchange(ctx, out)
				}
			}
			const steps = 100
			for range steps {
				step()
			}
			if rank == 1 {
				for range steps + 1 {
					step()
				}
				return err
			}
			if n := testing.AllocsPerRun(steps, step); err == nil && n > 0 {
				err = fmt.Errorf("%d bytes: %v allocations a step", size, n)
			}
			return err
		})
	}
	return errors.Join(all.Wait(), tr.Close())
}

// pass sends to the next two members what the step says.
func pass(ctx context.Context, g *group.Group, step, size int) error {
	var out []group.Package
	for d := range 2 {
		to := (g.Rank() + d + 1) % g.Size()
		out = append(out, group.Package{Rank: to, Data: bytes.Repeat([]byte{byte(16*g.Rank() + step)}, size)})
	}
	in, err := g.Exchange(ctx, out)
	if err != nil {
		return err
	}
	if len(in) != min(2, 2*size) {
		return fmt.Errorf("%d packages in step %d", len(in), step)
	}
	for _, p := range in {
		if !bytes.Equal(p.Data, bytes.Repeat([]byte{byte(16*p.Rank + step)}, size)) {
			return fmt.Errorf("other bytes from rank %d in step %d", p.Rank, step)
		}
	}
	return nil
}

// TestNodeDies: the member of a node that died is lost; the others continue.
func TestNodeDies(t *testing.T) {
	ctx, dev := device(t, "sim:?torus=3x1x1")
	tr, err := Open(ctx, dev, 3)
	require.NoError(t, err)
	var all errgroup.Group
	joined := make(chan bool, 3)
	for rank := range 3 {
		all.Go(func() error {
			g, err := group.Join(ctx, tr, group.Options{Rank: rank, Size: 3, Algorithm: "isend"})
			if err != nil {
				return err
			}
			defer g.Close()
			joined <- true
			if rank == 0 {
				for range 3 {
					<-joined
				}
				if err := fabric.Of(dev).KillNode(t.Context(), fabric.At(2, 0, 0), true); err != nil {
					return err
				}
			}
			for err == nil {
				_, err = g.Exchange(ctx, nil)
			}
			if !errors.Is(err, group.ErrGone) && !errors.Is(err, group.ErrRevoked) {
				return err
			}
			if _, err = g.Shrink(ctx); rank == 2 {
				if !errors.Is(err, group.ErrGone) {
					return fmt.Errorf("it goes on: %w", err)
				}
				return nil
			}
			if err == nil {
				err = g.Barrier(ctx)
			}
			return err
		})
	}
	require.NoError(t, all.Wait())
	require.NoError(t, tr.Close())
}

// TestNoFabric: a device that is in none has no nodes to place members on.
func TestNoFabric(t *testing.T) {
	ctx, dev := device(t, "sim:")
	_, err := Open(ctx, dev, 2)
	require.ErrorIs(t, err, nfcomms.ErrNotSupported)
}
