package nfcomms

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

func TestSelectReceivesWhatIsReady(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	wait := running(t, func() error { return far.write(ctx, []byte("abc")) })
	buf, n := make([]byte, 8), 0
	i, err := Select(ctx, SendCase(ch, []byte("x")), ReceiveCase(ch, buf, &n), GoReceive[int](nil, nil, nil))
	require.NoError(t, err)
	assert.Equal(t, 1, i)
	assert.Equal(t, "abc", string(buf[:n]))
	wait()
}

func TestSelectWaitsForTheTarget(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	wait := running(t, func() error {
		// Select is asleep once it has armed the channel.
		if err := far.until(ctx, func() bool { return far.half[abi.H2D].waiters.Len() > 0 }); err != nil {
			return err
		}
		msg, err := far.read(ctx)
		assert.Equal(t, "hi", string(msg))
		return err
	})
	i, err := Select(ctx, ReceiveCase(ch, nil, nil), SendCase(ch, []byte("hi")))
	require.NoError(t, err)
	assert.Equal(t, 1, i)
	wait()
	assert.Zero(t, far.half[abi.H2D].waiters.Len())
	assert.Zero(t, far.half[abi.D2H].waiters.Len())
}

func TestSelectNative(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	armed := func() error { return far.until(ctx, func() bool { return far.half[abi.D2H].waiters.Len() > 0 }) }
	in, out := make(chan error), make(chan int)
	for range 2 { // once asleep, once ready
		wait := running(t, func() error {
			if err := armed(); err != nil {
				return err
			}
			in <- io.EOF
			return nil
		})
		var got error
		var ok bool
		i, err := Select(ctx, ReceiveCase(ch, nil, nil), GoReceive(in, &got, &ok))
		require.NoError(t, err)
		assert.Equal(t, 1, i)
		assert.Equal(t, io.EOF, got)
		assert.True(t, ok)
		wait()
		wait = running(t, func() error { <-out; return nil })
		i, err = Select(ctx, GoSend(out, 4), ReceiveCase(ch, nil, nil))
		require.NoError(t, err)
		assert.Equal(t, 0, i)
		wait()
	}
	close(in)
	got, ok := io.EOF, true
	i, err := Select(ctx, GoReceive(in, &got, &ok), Case{})
	require.NoError(t, err)
	assert.Equal(t, 0, i)
	assert.NoError(t, got)
	assert.False(t, ok)
}

func TestSelectSleepsForNativeChannels(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	asleep := func() error { return far.until(ctx, func() bool { return far.half[abi.D2H].waiters.Len() > 0 }) }
	in := make(chan error)
	wait := running(t, func() error { defer close(in); return asleep() })
	i, err := Select(ctx, ReceiveCase(ch, nil, nil), GoReceive[error](in, nil, nil))
	require.NoError(t, err)
	assert.Equal(t, 1, i)
	wait()
}

func TestSelectDefault(t *testing.T) {
	ctx := background(t)
	ch, _ := channel(t)
	i, err := Select(ctx, SendCase(ch, nil), Default(), ReceiveCase(ch, nil, nil), GoSend[int](nil, 1))
	require.NoError(t, err)
	assert.Equal(t, 1, i)
	ready := make(chan int, 1)
	i, err = Select(ctx, Default(), GoSend(ready, 1))
	require.NoError(t, err)
	assert.Equal(t, 1, i)
}

func TestSelectNilChannels(t *testing.T) {
	ctx := background(t)
	i, err := Select(ctx, SendCase(nil, nil), ReceiveCase(nil, nil, nil), Default())
	require.NoError(t, err)
	assert.Equal(t, 2, i)
}

func TestSelectContextWins(t *testing.T) {
	ch, far := channel(t)
	ctx, cancel := context.WithCancel(background(t))
	ready := make(chan int, 1)
	cancel()
	for range 100 {
		i, err := Select(ctx, GoSend(ready, 1), ReceiveCase(ch, nil, nil), Default())
		require.Equal(t, -1, i)
		require.ErrorIs(t, err, ErrWithdrawn)
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, ready)
	}
	ctx, cancel = context.WithCancel(background(t))
	wait := running(t, func() error {
		defer cancel()
		return far.until(ctx, func() bool { return far.half[abi.H2D].waiters.Len() > 0 })
	})
	i, err := Select(ctx, SendCase(ch, nil))
	require.Equal(t, -1, i)
	require.ErrorIs(t, err, ErrWithdrawn)
	wait()
	assert.Zero(t, far.half[abi.H2D].waiters.Len())
	i, err = Select(ctx)
	require.Equal(t, -1, i)
	require.ErrorIs(t, err, ErrWithdrawn)
}

func TestSelectRefuses(t *testing.T) {
	ch, _ := channel(t)
	for _, w := range []wants{
		{"same half", opSelect, 0, func(ctx context.Context) error {
			_, err := Select(ctx, SendCase(ch, nil), SendCase(ch, nil))
			return err
		}, ErrInvalid},
		{"two defaults", opSelect, 0, func(ctx context.Context) error {
			_, err := Select(ctx, Default(), Default())
			return err
		}, ErrInvalid},
	} {
		w.check(t, "")
	}
}

func TestSelectErrorsBelongToACase(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	i, err := Select(ctx, ReceiveCase(ch, nil, nil), SendCase(ch, make([]byte, 57)))
	assert.Equal(t, 1, i)
	require.ErrorIs(t, err, ErrTooLarge)
	wait := running(t, func() error {
		defer far.CloseReceive()
		return far.until(ctx, func() bool { return far.half[abi.D2H].waiters.Len() > 0 })
	})
	i, err = Select(ctx, SendCase(ch, nil), ReceiveCase(ch, nil, nil))
	assert.Equal(t, 1, i)
	require.ErrorIs(t, err, ErrClosed)
	wait()
}

func TestSelectPanicsAsSelectDoes(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	c := make(chan int)
	close(c)
	assert.Panics(t, func() { _, _ = Select(ctx, GoSend(c, 1), ReceiveCase(ch, nil, nil)) })
	tries := 0
	late := Case{try: func(context.Context, chan<- struct{}) (bool, error) {
		if tries++; tries == 2 {
			panic("closed once the channels are armed")
		}
		return false, nil
	}}
	assert.Panics(t, func() { _, _ = Select(ctx, late, ReceiveCase(ch, nil, nil)) })
	assert.Zero(t, far.half[abi.D2H].waiters.Len(), "nothing stays armed")
}

// TestSelectIsFair has four ready cases and counts the choices.
func TestSelectIsFair(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	const rounds = 800
	ready := make(chan int, rounds)
	full := make(chan int, rounds)
	for range rounds {
		full <- 1
	}
	stop, cancel := context.WithCancel(ctx)
	wait := running(t, func() error {
		for far.write(stop, nil) == nil {
			continue
		}
		return nil
	})
	var chosen [3]int
	for range rounds {
		_, err := ch.Next(ctx)
		require.NoError(t, err)
		i, err := Select(ctx, ReceiveCase(ch, nil, nil), GoSend(ready, 1), GoReceive(full, nil, nil))
		require.NoError(t, err)
		chosen[i]++
	}
	cancel()
	wait()
	for i, n := range chosen {
		assert.Greater(t, n, rounds/6, "case %d of %v", i, chosen)
	}
}

// TestSelectExactlyOne compares ledgers of both ends after a random mix.
func TestSelectExactlyOne(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "rounds")
		ctx, stop := context.WithCancel(context.Background())
		far := &fakeChannel{target: 16, changed: make(chan struct{})}
		ch := &Channel{dev: new(Device), ch: far}
		native := make(chan int)
		var read, written, went int
		ends := make(chan struct{})
		device := func(f func() error, count *int) {
			for f() == nil {
				*count++
			}
			ends <- struct{}{}
		}
		go device(func() error { _, err := far.read(ctx); return err }, &read)
		go device(func() error { return far.write(ctx, []byte{1}) }, &written)
		go device(func() error {
			select {
			case <-native:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, &went)
		var chosen [3]int
		for range n {
			i, err := Select(ctx, SendCase(ch, []byte{2}), ReceiveCase(ch, make([]byte, 1), nil), GoSend(native, 3))
			require.NoError(rt, err)
			chosen[i]++
		}
		stop()
		for range 3 {
			<-ends
		}
		require.Equal(rt, [3]int{read, written, went}, chosen)
	})
}

// TestSelectOfVeryMany: package reflect has a limit for Go channels, which is
// refused by name; cases of device channels do not count.
func TestSelectOfVeryMany(t *testing.T) {
	ctx := background(t)
	ready := make(chan int, 1)
	cases := make([]Case, maxNativeCases, maxNativeCases+1)
	for i := range cases {
		cases[i] = GoReceive[int](nil, nil, nil)
	}
	cases[maxNativeCases-1] = GoReceive(ready, nil, nil)
	stop := time.AfterFunc(time.Millisecond, func() { ready <- 1 })
	defer stop.Stop()
	i, err := Select(ctx, cases...)
	require.NoError(t, err)
	assert.Equal(t, maxNativeCases-1, i)
	i, err = Select(ctx, append(cases, GoReceive(ready, nil, nil))...)
	assert.Equal(t, -1, i)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, "65535 cases of Go channels, at most 65534")

	const n = maxNativeCases + 10
	cases = cases[:0]
	var last *fakeChannel
	for range n {
		last = &fakeChannel{target: 16, changed: make(chan struct{})}
		cases = append(cases, ReceiveCase(&Channel{dev: new(Device), ch: last}, make([]byte, 1), nil))
	}
	wait := running(t, func() error { return last.write(ctx, []byte{1}) })
	i, err = Select(ctx, cases...)
	require.NoError(t, err)
	assert.Equal(t, n-1, i)
	wait()
}
