package nfcomms

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompletions: futures of two channels are returned as they end, each once, whether
// they ended before they were added or after.
func TestCompletions(t *testing.T) {
	ctx := background(t)
	one, far1 := channel(t)
	two, far2 := channel(t)
	var q Completions
	_, err := q.take(ctx)
	require.ErrorIs(t, err, io.EOF)

	slow := SendCase(one, []byte("slow")).Start(ctx)
	require.NoError(t, q.Add(slow))
	quick := SendCase(two, []byte("quick")).Start(ctx)
	_, err = far2.read(ctx)
	require.NoError(t, err)
	<-quick.Done()
	require.NoError(t, q.Add(quick))
	require.Equal(t, 2, len(q.pending)+len(q.ended))
	f, err := q.take(ctx)
	require.NoError(t, err)
	require.Same(t, quick, f)

	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err = q.take(over)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, len(q.pending)+len(q.ended), "nothing is lost")
	_, err = far1.read(ctx)
	require.NoError(t, err)
	f, err = q.take(ctx)
	require.NoError(t, err)
	require.Same(t, slow, f)
	require.Zero(t, len(q.pending)+len(q.ended))
}

func TestCompletionsRefuse(t *testing.T) {
	ctx, cancel := context.WithCancel(background(t))
	ch, _ := channel(t)
	var q, other Completions
	f := SendCase(ch, nil).Start(ctx)
	require.NoError(t, q.Add(f))
	require.ErrorIs(t, q.Add(f), ErrBusy)
	require.ErrorIs(t, other.Add(f), ErrBusy)
	cancel()
	<-f.Done()
	require.ErrorIs(t, other.Add(f), ErrBusy)
	require.ErrorIs(t, q.Wait(background(t)), context.Canceled)
	require.Zero(t, len(q.pending)+len(q.ended)+len(other.pending)+len(other.ended))
}

// TestCompletionsTogether: many add, many take, and each future is returned once.
func TestCompletionsTogether(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	const adders, each = 4, 50
	go func() {
		for range adders * each {
			if _, err := far.read(ctx); err != nil {
				return
			}
		}
	}()
	var q Completions
	var out sync.Map
	var taken atomic.Int64
	var all sync.WaitGroup
	for range adders {
		all.Go(func() {
			for range each {
				f := SendCase(ch, nil).Start(ctx)
				if rand.IntN(2) == 0 {
					<-f.Done()
				}
				if q.Add(f) != nil {
					t.Error("refused")
				}
			}
		})
		all.Go(func() {
			for taken.Load() < adders*each {
				f, err := q.take(ctx)
				if err == io.EOF {
					continue // the adders are not ahead
				}
				if _, twice := out.LoadOrStore(f, true); twice || err != nil {
					t.Error("twice, or", err)
					return
				}
				taken.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, adders*each, taken.Load())
}
