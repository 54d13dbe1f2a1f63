//go:build cgo

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// image is that of testdata, built once.
var image = sync.OnceValues(func() ([]byte, error) {
	return program.Build(context.Background(), os.DirFS("testdata"), program.Options{})
})

// bench is a device with the programs, and a mesh.
type bench struct {
	ctx  context.Context
	dev  *nfcomms.Device
	mesh *group.Mesh
	size int
}

func newBench(t *testing.T, size int) *bench {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a watchdog
	t.Cleanup(cancel)
	built, err := image()
	require.NoError(t, err)
	// A heartbeat that is late on a busy machine ends nothing.
	dev, err := nfcomms.Open(ctx, "sim:?beat=1m", nfcomms.WithLogger(slog.New(slog.NewTextHandler(t.Output(), nil))))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	_, err = dev.Load(ctx, built)
	require.NoError(t, err)
	return &bench{ctx, dev, group.NewMesh(size), size}
}

func (b *bench) run(t *testing.T, p nfcomms.Program) *nfcomms.Instance {
	t.Helper()
	i, err := b.dev.Run(b.ctx, p)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.Close()) })
	return i
}

func (b *bench) join(ctx context.Context, rank int) (*group.Group, error) {
	return group.Join(ctx, b.mesh, group.Options{Rank: rank, Size: b.size, Algorithm: "isend"})
}

// serve has a process as a member until it leaves.
func (b *bench) serve(ctx context.Context, rank int, i *nfcomms.Instance) error {
	g, err := b.join(ctx, rank)
	if err != nil {
		return err
	}
	return Serve(ctx, g, i.Channels[0])
}

// give is what testdata's give and check are.
func give(ctx context.Context, g *group.Group, step int) error {
	size := step * step * step * 37 % 40000
	var out []group.Package
	for to := range g.Size() {
		if to != g.Rank() {
			out = append(out, group.Package{Rank: to, Data: bytes.Repeat([]byte{byte(16*g.Rank() + step)}, size)})
		}
	}
	in, err := g.Exchange(ctx, out)
	if err != nil {
		return err
	}
	if len(in) != (g.Size()-1)*min(1, size) {
		return fmt.Errorf("%d packages in step %d", len(in), step)
	}
	for _, p := range in {
		if !bytes.Equal(p.Data, bytes.Repeat([]byte{byte(16*p.Rank + step)}, size)) {
			return fmt.Errorf("other bytes from rank %d in step %d", p.Rank, step)
		}
	}
	return nil
}

// TestMembers: processes and goroutines exchange nothing, a few bytes and many pages, and make every
// call of a group. One goroutine has a package left while the processes flush.
func TestMembers(t *testing.T) {
	const steps = 12
	b := newBench(t, 4)
	var all errgroup.Group
	for rank := 1; rank < b.size; rank++ {
		i := b.run(t, nfcomms.Program{Name: "member", Argument: steps})
		all.Go(func() error { return b.serve(b.ctx, rank, i) })
	}
	all.Go(func() error {
		g, err := b.join(b.ctx, 0)
		for step := 0; err == nil && step < steps; step++ {
			err = give(b.ctx, g, step)
		}
		if err == nil {
			err = g.Barrier(b.ctx)
		}
		if err == nil {
			_, err = g.Allgatherv(b.ctx, nil)
		}
		if err == nil {
			_, err = g.Exchange(b.ctx, []group.Package{{Rank: 1, Data: make([]byte, 9000)}, {Rank: 2, Data: []byte("x")}, {Rank: 3, Data: []byte("y")}})
		}
		if err == nil {
			for _, ferr := range g.Flush(b.ctx) {
				err = errors.Join(err, ferr)
			}
		}
		return errors.Join(err, g.Close())
	})
	require.NoError(t, all.Wait())
}

// survive exchanges until a member is lost, and in the group of the others after that.
func survive(ctx context.Context, g *group.Group) error {
	var err error
	for err == nil {
		_, err = g.Exchange(ctx, nil)
	}
	if !errors.Is(err, group.ErrGone) && !errors.Is(err, group.ErrRevoked) {
		return err
	}
	if _, err := g.Shrink(ctx); err != nil {
		return err
	}
	for step := range 3 {
		if err := give(ctx, g, step); err != nil {
			return err
		}
	}
	return nil
}

// TestCrash: a process that crashes is a lost member; the goroutine and the process that
// are left continue without it.
func TestCrash(t *testing.T) {
	b := newBench(t, 3)
	mortal, heir := b.run(t, nfcomms.Program{Name: "mortal"}), b.run(t, nfcomms.Program{Name: "heir"})
	var all errgroup.Group
	all.Go(func() error {
		err := b.serve(b.ctx, 2, mortal)
		if crash := (*nfcomms.CrashError)(nil); !errors.As(err, &crash) {
			return fmt.Errorf("the process did not crash: %w", err)
		}
		return nil
	})
	all.Go(func() error { return b.serve(b.ctx, 1, heir) })
	all.Go(func() error {
		g, err := b.join(b.ctx, 0)
		if err != nil {
			return err
		}
		defer g.Close()
		return survive(b.ctx, g)
	})
	require.NoError(t, all.Wait())
}

// TestEndInAStep: a member whose step waits for another one ends with its process, with its
// context and with its device.
func TestEndInAStep(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*bench, *nfcomms.Instance, context.CancelFunc) error
		want error
	}{
		"process": {func(b *bench, i *nfcomms.Instance, _ context.CancelFunc) error {
			return i.Channels[1].Send(b.ctx, nil)
		}, nfcomms.ErrClosed},
		"context": {func(_ *bench, _ *nfcomms.Instance, cancel context.CancelFunc) error {
			cancel()
			return nil
		}, context.Canceled},
		"reset": {func(b *bench, _ *nfcomms.Instance, _ context.CancelFunc) error {
			return b.dev.Reset(b.ctx)
		}, nfcomms.ErrDeviceLost},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2)
			i, err := b.dev.Run(b.ctx, nfcomms.Program{Name: "leaver", Targets: 2})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(b.ctx)
			defer cancel()
			served := make(chan error, 1)
			go func() { served <- b.serve(ctx, 1, i) }()
			g, err := b.join(b.ctx, 0)
			require.NoError(t, err)
			require.NoError(t, tt.end(b, i, cancel))
			require.ErrorIs(t, <-served, tt.want)
			for err = g.Barrier(b.ctx); err == nil; { // the first one may have met the other's
				err = g.Barrier(b.ctx)
			}
			require.ErrorIs(t, err, group.ErrGone)
			require.NoError(t, g.Close())
		})
	}
}

// TestLies: a call that makes no sense ends the member; arguments that make none do not.
func TestLies(t *testing.T) {
	const lies, survived = 10, 2
	b := newBench(t, 1)
	programs := []nfcomms.Program{{Name: "stranger"}}
	for lie := range uint64(lies + survived) {
		programs = append(programs, nfcomms.Program{Name: "liar", Argument: lie})
	}
	for n, p := range programs {
		b.mesh = group.NewMesh(b.size)
		err := b.serve(b.ctx, 0, b.run(t, p))
		if n > lies {
			require.NoError(t, err, p)
		} else {
			require.ErrorIs(t, err, ErrCall, p)
		}
	}
}
