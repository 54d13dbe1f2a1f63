//go:build cgo

package pool

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// outcome counts how the exchanges of many callers ended.
type outcome struct{ right, wrong, unanswered, untaken atomic.Int64 }

// ask does one exchange that no other caller does, and checks its answer.
func (o *outcome) ask(ctx context.Context, p *Pool, mood byte, number uint64, long bool) {
	in := binary.NativeEndian.AppendUint64([]byte{mood, 0, 0, 0, 0, 0, 0, 0}, number)
	if long {
		in = append(in, make([]byte, 4000)...)
	}
	out := make([]byte, len(in))
	n, err := p.Do(ctx, in, out)
	switch {
	case err == nil && string(out[:n]) == string(in):
		o.right.Add(1)
	case err == nil:
		o.wrong.Add(1)
	case errors.Is(err, nfcomms.ErrUnanswered):
		o.unanswered.Add(1)
	default:
		o.untaken.Add(1)
	}
}

// TestThousandCallers: a thousand callers, some of which cancel or ask for a crash, a return or two
// answers, while the device is reset: no caller gets the answer of another.
func TestThousandCallers(t *testing.T) {
	const callers, each = 1000, 5
	dev := open(t, "sim:?beat=5ms")
	p := start(t, dev, Options{Processes: 8, Timeout: 2 * time.Second})
	ctx := background(t)
	var o outcome
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(c)))
			for i := range each {
				mood := byte(' ')
				if c%50 == 0 {
					mood = "crt"[i%3]
				}
				asks, leave := ctx, context.CancelFunc(func() {})
				if c%10 == 3 {
					asks, leave = context.WithTimeout(ctx, time.Duration(r.IntN(int(20*time.Millisecond))))
				}
				o.ask(asks, p, mood, uint64(c*each+i), r.IntN(4) == 0)
				leave()
			}
		})
	}
	resets := make(chan struct{})
	go func() {
		defer close(resets)
		for range 3 {
			before := o.right.Load()
			assert.Eventually(t, func() bool { return o.right.Load() > before+100 }, time.Minute, time.Millisecond)
			assert.NoError(t, dev.Reset(ctx))
		}
	}()
	all.Wait()
	<-resets
	s := p.Stats()
	t.Logf("%d right, %d unanswered, %d not taken; %d retries, %d processes replaced",
		o.right.Load(), o.unanswered.Load(), o.untaken.Load(), s.Retries, s.Replaced)
	require.Zero(t, o.wrong.Load())
	require.EqualValues(t, callers*each, o.right.Load()+o.unanswered.Load()+o.untaken.Load())
	require.EqualValues(t, o.right.Load(), s.Exchanges)
	require.EqualValues(t, o.unanswered.Load()+o.untaken.Load(), s.Failed)
	require.Greater(t, o.right.Load(), int64(callers*each*3/4))
	echoes(t, p, "afterwards")
}

// TestReset: exchanges that wait while the device is reset are done by the processes of the next epoch, also
// where every process of the one before has ended.
func TestReset(t *testing.T) {
	dev := open(t, "sim:?beat=5ms")
	p := start(t, dev, Options{Processes: 8})
	for range 5 {
		require.NoError(t, dev.Reset(background(t)))
		echoes(t, p, "Some text")
	}
	require.Zero(t, p.Stats().Failed)
	rounds := 20
	if testing.Short() {
		rounds = 4 // the pool waits longer each time, up to a second
	}
	for range rounds {
		left := begin(t, background(t), p, []byte("wait"))
		require.NoError(t, dev.Reset(background(t)))
		err := <-left
		require.ErrorIs(t, err, nfcomms.ErrUnanswered)
		require.ErrorIs(t, err, nfcomms.ErrDeviceLost)
	}
}

// TestLostProcessesAreNoAttempts: a caller that finds processes of an epoch that is over takes one
// that runs, however many there are.
func TestLostProcessesAreNoAttempts(t *testing.T) {
	dev := open(t, "sim:?beat=5ms")
	p := start(t, dev, Options{Processes: 1, Attempts: 1}) // no other enters the queue meanwhile
	lost, err := dev.Subscribe(background(t), nfcomms.Loopback)
	require.NoError(t, err)
	require.NoError(t, dev.Reset(background(t)))
	echoes(t, p, "Next epoch")
	before := p.Stats().Retries // the process of the epoch before may have been one
	for range 5 {
		p.queue.offer(&lane{ch: lost, epoch: t.Context(), back: make(chan state, 1)})
	}
	echoes(t, p, "Next process")
	require.EqualValues(t, before+5, p.Stats().Retries)
	require.Zero(t, p.Stats().Failed)
	require.NoError(t, lost.Close())
}

// TestIdempotent: an exchange that may be repeated is, on another process, where the first was lost with its input.
func TestIdempotent(t *testing.T) {
	dev := open(t, "sim:?beat=5ms")
	p := start(t, dev, Options{Processes: 2, Idempotent: true})
	left := begin(t, background(t), p, []byte("wait"))
	require.NoError(t, dev.Reset(background(t)))
	_, err := p.Do(background(t), []byte("open"), make([]byte, 4)) // the repeated one waits for it
	require.NoError(t, err)
	require.NoError(t, <-left)
	_, err = p.Do(background(t), []byte("crash"), nil)
	require.ErrorIs(t, err, nfcomms.ErrUnanswered)
	require.ErrorIs(t, err, nfcomms.ErrClosed)
	echoes(t, p, "Next")
	require.Eventually(t, func() bool { return p.Stats().Replaced == 3 }, time.Minute, time.Millisecond, "attempts are bounded")
}
