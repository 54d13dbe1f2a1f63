//go:build cgo

package mesh

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// TestLinkTest: words are counted, wrong ones too, beside packets that continue; what
// cannot be tested is one typed error.
func TestLinkTest(t *testing.T) {
	m := open(t, quick(2, 1, 1))
	const words = 100 * 256
	load := Load{From: 0, To: 1, Size: 4096, Count: 500}
	require.NoError(t, m.Start(load))
	result, err := m.Test(t.Context(), 0, 0, words)
	require.NoError(t, err)
	require.Equal(t, Tested{Words: words}, result)
	require.NoError(t, m.Wait(t.Context(), load, 2*time.Second))
	total, err := m.Totals()
	require.NoError(t, err)
	require.EqualValues(t, load.Count, total.Came)
	require.Zero(t, total.Changed+total.Doubled+total.Repeated)

	require.NoError(t, m.Break(0, 0, Faults{Seed: 1, Flip: 1e-3}))
	result, err = m.Test(t.Context(), 0, 0, words)
	require.NoError(t, err)
	require.EqualValues(t, words, result.Words)
	require.Greater(t, result.Wrong, uint64(words/10_000))
	require.Less(t, result.Wrong, uint64(words/100))
	require.NoError(t, m.Break(0, 0, Faults{}))

	for _, wrong := range []struct{ node, link, words int }{{2, 0, 1}, {-1, 0, 1}, {0, 2, 1}, {0, 6, 1}, {0, 0, 0}, {0, 0, TestMax + 1}} {
		_, err = m.Test(t.Context(), wrong.node, wrong.link, uint64(wrong.words))
		require.ErrorIs(t, err, bridge.ErrInvalid, "%+v", wrong)
	}
	require.NoError(t, m.Cut(0, 0, true))
	require.NoError(t, m.Settle(t.Context(), func(_ int, w []abi.Diagnostic) bool { return w[0].Reading(abi.DiagXPlus) == abi.Broken }))
	_, err = m.Test(t.Context(), 0, 0, words)
	require.ErrorIs(t, err, bridge.ErrLinkDown)
	m.Close()
	_, err = m.Test(t.Context(), 0, 0, words)
	require.ErrorIs(t, err, bridge.ErrClosed)
}

// TestLinkTestEnds: with its context, with the link, and there is one at a time.
func TestLinkTestEnds(t *testing.T) {
	m := open(t, quick(2, 1, 1))
	begin := func(ctx context.Context) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := m.Test(ctx, 0, 0, TestMax)
			ended <- err
		}()
		for tested := 0; tested == 0; {
			m.testing.Lock()
			tested = len(m.tested)
			m.testing.Unlock()
			runtime.Gosched()
		}
		return ended
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := begin(ctx)
	_, err := m.Test(t.Context(), 0, 0, 1)
	require.ErrorIs(t, err, bridge.ErrBusy)
	_, err = m.Test(t.Context(), 1, 1, 1)
	require.NoError(t, err, "the other end is one of its own")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)

	ended = begin(t.Context())
	require.NoError(t, m.Cut(0, 0, true))
	require.ErrorIs(t, <-ended, bridge.ErrLinkDown)
}
