package group

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

// child is what this binary does as another process, where it is there.
var child func(ctx context.Context) error

func TestMain(m *testing.M) {
	if child != nil && os.Getenv(childEnv) != "" {
		if err := child(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// childEnv has the rank of a member process.
const childEnv = "NFC_GROUP_RANK"

// patience bounds what should end by itself: a watchdog, not a measurement.
const patience = time.Minute

func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

var names atomic.Int64

// transports are all there are, each for a group of a size.
var transports = map[string]func(t testing.TB, size int) func(rank int) Transport{
	"mesh": func(_ testing.TB, size int) func(int) Transport {
		m := NewMesh(size)
		return func(int) Transport { return m }
	},
	"relayed": func(t testing.TB, size int) func(int) Transport {
		r := NewRelayed(size, []io.ReadWriteCloser{newEcho(), newEcho()})
		t.Cleanup(func() { require.NoError(t, r.Close()) })
		return func(int) Transport { return r }
	},
}

// echo is a relay in memory.
type echo struct {
	*io.PipeReader
	*io.PipeWriter
}

func newEcho() echo {
	r, w := io.Pipe()
	return echo{r, w}
}

func (e echo) Close() error { return errors.Join(e.PipeReader.Close(), e.PipeWriter.Close()) }

// play joins members over a transport, runs fn as each, and closes them.
func play(t *testing.T, transport string, o Options, fn func(ctx context.Context, g *Group) error) {
	t.Helper()
	ctx := background(t)
	connect := transports[transport](t, o.Size)
	var all errgroup.Group
	for rank := range o.Size {
		all.Go(func() error {
			o := o
			o.Rank = rank
			g, err := Join(ctx, connect(rank), o)
			if err != nil {
				return err
			}
			if err = fn(ctx, g); err != nil {
				err = fmt.Errorf("rank %d: %w", rank, err)
			}
			if cerr := g.Close(); err == nil {
				err = cerr
			}
			return err
		})
	}
	require.NoError(t, all.Wait())
}

// pattern is how many bytes each member has for each in a step; -1 none.
type pattern func(r *rand.Rand, from, to int) int

// stepBytes are the bytes that one member has for another in a step.
func stepBytes(seed uint64, p pattern, step, from, to, size int) []byte {
	r := rand.New(rand.NewPCG(seed, uint64(step*size*size+from*size+to)))
	n := p(r, from, to)
	if n < 0 {
		return nil
	}
	b := make([]byte, n)
	const random = 61 // a misplaced byte shows, unless by a multiple of it
	for i := range b[:min(n, random)] {
		b[i] = byte(r.Uint32())
	}
	for have := random; have < n; have *= 2 {
		copy(b[have:], b[:have])
	}
	return b
}

// outOf is all that a member has for the others in a step.
func outOf(seed uint64, p pattern, step int, g *Group) []Package {
	var out []Package
	for to := range g.Size() {
		if to == g.Rank() {
			continue
		}
		if b := stepBytes(seed, p, step, g.Rank(), to, g.Size()); b != nil {
			out = append(out, Package{to, b})
		}
	}
	rand.New(rand.NewPCG(seed, uint64(step))).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// checkIn compares what a member got in a step with what the others had for it:
// the reference is the function that made it.
func checkIn(seed uint64, p pattern, step int, g *Group, in []Package) error {
	got := make(map[int]bool)
	for _, q := range in {
		want := stepBytes(seed, p, step, q.Rank, g.Rank(), g.Size())
		if got[q.Rank] || len(q.Data) == 0 || string(want) != string(q.Data) {
			return fmt.Errorf("step %d: from rank %d: %d bytes, not the %d it sent, or twice", step, q.Rank, len(q.Data), len(want))
		}
		got[q.Rank] = true
	}
	for from := range g.Size() {
		if from != g.Rank() && !got[from] && len(stepBytes(seed, p, step, from, g.Rank(), g.Size())) > 0 {
			return fmt.Errorf("step %d: nothing from rank %d", step, from)
		}
	}
	return nil
}

// errs are members that run at once.
type errs = errgroup.Group
