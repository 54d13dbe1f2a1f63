//go:build cgo

package nfcomms_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	. "github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// asked is a process that does with questions what it is told.
type asked struct {
	t            *testing.T
	orders, data *Channel
}

func askedOf(t *testing.T) *asked {
	t.Helper()
	dev, err := Open(t.Context(), "sim:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	i, err := dev.Run(t.Context(), Program{Name: "asked", Targets: 2})
	require.NoError(t, err)
	return &asked{t, i.Channels[0], i.Channels[1]}
}

// order has the process do something, and returns the status of that: 0, or as in C.
func (a *asked) order(what byte, n int) int64 {
	a.t.Helper()
	type order struct{ What, N int64 }
	require.NoError(a.t, ChanOf[order](a.orders).Send(a.t.Context(), order{int64(what), int64(n)}))
	rc, err := ChanOf[int64](a.orders).Receive(a.t.Context())
	require.NoError(a.t, err)
	return rc
}

// Orders of the program.
const takeQuestion, replyTo, readPlainly, writeTo, closeHalf = 'q', 'r', 'p', 'w', 'c'

// TestCallOutcomes: each end of a call is exact. The suite has those at the process.
func TestCallOutcomes(t *testing.T) {
	a := askedOf(t)
	buf := make([]byte, MessageSize)
	begin := func() *Future { return CallCase(a.data, []byte("question"), buf, nil).Start(t.Context()) }

	f := begin() // given up: the next call has its own answer
	require.EqualValues(t, 8, a.order(takeQuestion, 0))
	f.Cancel()
	_, err := f.Wait(t.Context())
	requireUnanswered(t, err, context.Canceled, false)
	f = begin()
	require.EqualValues(t, 8, a.order(takeQuestion, 0))
	require.Zero(t, a.order(replyTo, 2))
	n, err := f.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "qu", string(buf[:n]))

	f = begin() // nobody took it
	f.Cancel()
	_, err = f.Wait(t.Context())
	require.ErrorIs(t, err, ErrWithdrawn)
	require.NotErrorIs(t, err, ErrUnanswered)

	f = begin() // a plain read: the answer is a message
	require.EqualValues(t, 8, a.order(readPlainly, 0))
	require.Zero(t, a.order(writeTo, 5))
	n, err = f.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "quest", string(buf[:n]))

	f = begin() // … which may be late
	require.EqualValues(t, 8, a.order(readPlainly, 0))
	f.Cancel()
	_, err = f.Wait(t.Context())
	requireUnanswered(t, err, context.Canceled, true)

	f = begin() // the process closes its half
	require.EqualValues(t, 8, a.order(takeQuestion, 0))
	require.Zero(t, a.order(closeHalf, 0))
	_, err = f.Wait(t.Context())
	requireUnanswered(t, err, ErrClosed, false)
	const eclosed = -1
	require.EqualValues(t, eclosed, a.order(replyTo, 8))
	_, err = a.data.Call(t.Context(), nil, buf)
	require.ErrorIs(t, err, ErrClosed)
	require.NotErrorIs(t, err, ErrUnanswered)
}

// requireUnanswered makes sure that a call ended after its question was taken.
func requireUnanswered(t *testing.T, err, cause error, late bool) {
	t.Helper()
	var unanswered *UnansweredError
	require.ErrorAs(t, err, &unanswered)
	require.ErrorIs(t, err, ErrUnanswered)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, ErrWithdrawn)
	require.Equal(t, late, unanswered.Late)
}

// TestCallOfAProcessThatCrashes: the call says that the process crashed with its question.
func TestCallOfAProcessThatCrashes(t *testing.T) {
	ctx := t.Context()
	dev, err := Open(ctx, "sim:")
	require.NoError(t, err)
	defer dev.Close()
	image, err := program.Build(ctx, os.DirFS("testdata/crashes"), program.Options{})
	require.NoError(t, err)
	name, err := dev.Load(ctx, image)
	require.NoError(t, err)
	i, err := dev.Run(ctx, Program{Name: name, Targets: 1})
	require.NoError(t, err)
	_, err = i.Channels[0].Call(ctx, []byte("last"), nil)
	requireUnanswered(t, err, ErrClosed, false)
	var crash *CrashError
	require.ErrorAs(t, err, &crash)
}

// TestCallForms: the ways to call, and what they refuse.
func TestCallForms(t *testing.T) {
	dev, err := Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	ch, err := dev.Subscribe(t.Context(), Loopback)
	require.NoError(t, err)
	type point struct{ X, Y int32 }
	p, err := CallOf[point, point](t.Context(), ch, point{3, 4})
	require.NoError(t, err)
	require.Equal(t, point{3, 4}, p)
	_, err = CallOf[point, int64](t.Context(), ch, point{3, 4})
	require.NoError(t, err)
	var wrong *SizeError
	_, err = CallOf[point, int32](t.Context(), ch, point{3, 4})
	require.ErrorAs(t, err, &wrong)
	_, err = CallOf[[60]byte, int32](t.Context(), ch, [60]byte{})
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = CallOf[*int, int32](t.Context(), ch, nil)
	require.ErrorIs(t, err, ErrPointers)
	_, err = ch.Call(t.Context(), make([]byte, MessageSize+1), nil)
	require.ErrorIs(t, err, ErrTooLarge)
	buf, n := make([]byte, 4), 0
	at, err := Select(t.Context(), CallCase(nil, nil, nil, nil), CallCase(ch, []byte("case"), buf, &n))
	require.NoError(t, err)
	require.Equal(t, 1, at)
	require.Equal(t, "case", string(buf[:n]))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ch.Call(ended, []byte("never"), buf)
	require.ErrorIs(t, err, ErrWithdrawn)
}

// TestCallsAgainstCancels: each of many calls has one outcome, and the process answered as many as were
// answered or may have been under way.
func TestCallsAgainstCancels(t *testing.T) {
	dev, err := Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	ch, err := dev.Subscribe(t.Context(), Loopback)
	require.NoError(t, err)
	const callers, each = 8, 1000
	var all sync.WaitGroup
	for g := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 7))
			for i := range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(30))*time.Microsecond)
				got, err := CallOf[[2]int, [2]int](ctx, ch, [2]int{g, i})
				cancel()
				switch {
				case err == nil:
					assert.Equal(t, [2]int{g, i}, got)
				case errors.Is(err, ErrUnanswered) == errors.Is(err, ErrWithdrawn):
					t.Errorf("call %d of %d: %v", i, g, err)
				}
			}
		})
	}
	all.Wait()
	got, err := CallOf[int, int](t.Context(), ch, 42)
	require.NoError(t, err)
	require.Equal(t, 42, got)
}
