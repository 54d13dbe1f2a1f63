//go:build cgo

package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
	"github.com/nfcomms/nfcomms/pkg/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// moody is the image of testdata/moody.
var moody = sync.OnceValues(func() ([]byte, error) {
	return program.Build(context.Background(), os.DirFS("testdata/moody"), program.Options{})
})

// background ends with the test, or before that if something hangs.
func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, address string) *nfcomms.Device {
	dev, err := nfcomms.Open(background(t), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// start starts a pool of moody processes, which ends with the test and leaves no process.
func start(t testing.TB, dev *nfcomms.Device, o Options) *Pool {
	image, err := moody()
	require.NoError(t, err)
	before, err := dev.Health()
	require.NoError(t, err)
	o.Images, o.Program.Name = [][]byte{image}, "moody"
	p, err := New(background(t), dev, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.Empty(t, admin.Channels(dev))
		s := p.Stats()
		require.Zero(t, [3]int{s.Running, s.Busy, s.Waiting})
		require.Eventually(t, func() bool {
			h, err := dev.Health()
			return err == nil && h.Processes == before.Processes
		}, time.Minute, time.Millisecond)
	})
	return p
}

// echoes checks that the pool answers a message and a transfer of its own.
func echoes(t testing.TB, p *Pool, text string) {
	t.Helper()
	for _, in := range [][]byte{[]byte(text), bytes.Repeat([]byte(text+"."), 100)} {
		out := make([]byte, len(in)+1)
		n, err := p.Do(background(t), in, out)
		require.NoError(t, err)
		require.Equal(t, string(in), string(out[:n]))
	}
}

func TestDo(t *testing.T) {
	p := start(t, open(t, "sim:"), Options{})
	echoes(t, p, "Some text")
	n, err := p.Do(background(t), nil, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	type pair struct{ A, B uint64 }
	v, err := Call[pair, pair](background(t), p, pair{1, 2})
	require.NoError(t, err)
	require.Equal(t, pair{1, 2}, v)
	large, err := Call[[1000]byte, [1000]byte](background(t), p, [1000]byte{999: 1})
	require.NoError(t, err)
	require.Equal(t, [1000]byte{999: 1}, large)
	s := p.Stats()
	require.Equal(t, 1, s.Processes)
	require.EqualValues(t, 5, s.Exchanges)
	require.Zero(t, s.Failed+s.Refused+s.Retries+s.Replaced)
	require.Positive(t, s.Time)
}

// TestTransfers: with the option an input that would be a message is a transfer, and so is its answer.
func TestTransfers(t *testing.T) {
	p := start(t, open(t, "sim:"), Options{Transfers: true})
	out := make([]byte, 8)
	n, err := p.Do(background(t), []byte("Text"), out)
	require.NoError(t, err)
	require.Equal(t, "Text", string(out[:n]))
	_, err = Call[[4]byte, [8]byte](background(t), p, [4]byte{})
	require.ErrorIs(t, err, nfcomms.ErrUnanswered)
	require.ErrorIs(t, err, nfcomms.ErrSizeMismatch)
	echoes(t, p, "Next")
}

// bounded returns options for a case, and how often to repeat it. Some cases wait until the time of an
// exchange is over; the others must not reach it, also where the process has no processor for seconds.
func bounded(name string) (o Options, rounds int) {
	if name == "silence" || name == "deaf" || name == "answers twice" {
		return Options{Timeout: 3 * time.Second}, 1
	}
	return Options{Timeout: time.Minute}, 3
}

// TestNextCallerGetsAWholeProcess: whatever becomes of an exchange, the next one with the only
// process of the pool is right.
func TestNextCallerGetsAWholeProcess(t *testing.T) {
	long := make([]byte, 100_000)
	for name, c := range map[string]struct {
		in, out  []byte
		want     error
		taken    bool
		replaced uint64
	}{
		"crash":           {[]byte("c"), nil, nfcomms.ErrClosed, true, 1},
		"return":          {[]byte("r"), nil, nfcomms.ErrClosed, true, 1},
		"silence":         {[]byte("h"), nil, nfcomms.ErrTargetTimeout, true, 1},
		"deaf":            {[]byte("d"), make([]byte, 1), nil, false, 1},
		"answers twice":   {[]byte("t"), make([]byte, 1), nil, false, 1},
		"no room":         {[]byte("Text"), make([]byte, 3), nfcomms.ErrTooLarge, true, 0},
		"no room at all":  {long, nil, nfcomms.ErrTooLarge, true, 0},
		"very long":       {[]byte("b"), nil, nfcomms.ErrTooLarge, true, 1},
		"input too large": {make([]byte, 3<<20), nil, nfcomms.ErrRange, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev := open(t, "sim:?beat=5ms")
			o, rounds := bounded(name)
			p := start(t, dev, o)
			for range rounds {
				before := p.Stats().Replaced
				_, err := p.Do(background(t), c.in, c.out)
				require.ErrorIs(t, err, c.want)
				require.Equal(t, c.taken, errors.Is(err, nfcomms.ErrUnanswered), err)
				echoes(t, p, "Some text")
				require.Equal(t, c.replaced, p.Stats().Replaced-before)
			}
		})
	}
}

// TestQuestions: a process that answers by replies needs no late answer to be taken from it.
func TestQuestions(t *testing.T) {
	for name, c := range map[string]struct {
		in, out  []byte
		want     error
		taken    bool
		replaced uint64
	}{
		"crash":                   {[]byte("c"), nil, nfcomms.ErrClosed, true, 1},
		"return":                  {[]byte("r"), nil, nfcomms.ErrClosed, true, 1},
		"silence":                 {[]byte("h"), nil, nfcomms.ErrTargetTimeout, true, 1},
		"deaf":                    {[]byte("d"), make([]byte, 1), nil, false, 1},
		"no room":                 {[]byte("Text"), make([]byte, 3), nfcomms.ErrTooLarge, true, 0},
		"a reply that is refused": {[]byte("t"), make([]byte, 1), nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _ := bounded(name)
			o.Program.Argument = 1
			p := start(t, open(t, "sim:?beat=5ms"), o)
			_, err := p.Do(background(t), c.in, c.out)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.taken, errors.Is(err, nfcomms.ErrUnanswered), err)
			echoes(t, p, "Some text")
			require.Equal(t, c.replaced, p.Stats().Replaced)
		})
	}
	p := start(t, open(t, "sim:"), Options{Program: nfcomms.Program{Argument: 1}, Processes: 2})
	for n := range 50 { // the caller of a process that waits leaves; another one lets it continue
		ctx, cancel := context.WithTimeout(background(t), time.Duration(n)*20*time.Microsecond)
		_, err := p.Do(ctx, []byte("x"), make([]byte, 1))
		cancel()
		require.True(t, err == nil || isWithdrawn(err) || errors.Is(err, nfcomms.ErrUnanswered), err)
		_, err = Call[[2]uint64, uint32](background(t), p, [2]uint64{1, 2})
		require.ErrorIs(t, err, nfcomms.ErrSizeMismatch)
		v, err := Call[[2]uint64, [2]uint64](background(t), p, [2]uint64{1, uint64(n)})
		require.NoError(t, err)
		require.Equal(t, [2]uint64{1, uint64(n)}, v)
	}
	require.Zero(t, p.Stats().Replaced)
}

// inputs counts the inputs that processes took.
func inputs(dev *nfcomms.Device) uint64 {
	s := dev.Stats()
	return s.Direct.H2D.Messages + s.Indirect.H2D.Messages
}

// begin starts an exchange and returns once a process has taken its input.
func begin(t testing.TB, ctx context.Context, p *Pool, in []byte) (left chan error) {
	before := inputs(p.dev)
	left = make(chan error, 1)
	go func() {
		_, err := p.Do(ctx, in, make([]byte, len(in)))
		left <- err
	}()
	require.Eventually(t, func() bool { return inputs(p.dev) > before }, time.Minute, time.Millisecond)
	return left
}

// isWithdrawn reports whether an error is that of a call whose context ended before its input was taken.
func isWithdrawn(err error) bool {
	return errors.Is(err, nfcomms.ErrWithdrawn) && !errors.Is(err, nfcomms.ErrUnanswered)
}

// TestCancel: a caller that cancels leaves before the answer, which is taken before the next caller
// has the process.
func TestCancel(t *testing.T) {
	p := start(t, open(t, "sim:"), Options{Processes: 2})
	for _, in := range [][]byte{[]byte("wait"), bytes.Repeat([]byte("wait"), 1000)} {
		ctx, cancel := context.WithCancel(background(t))
		left := begin(t, ctx, p, in)
		cancel()
		err := <-left
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, nfcomms.ErrUnanswered)
		require.NotErrorIs(t, err, nfcomms.ErrWithdrawn)
		_, err = p.Do(background(t), []byte("open"), make([]byte, 4))
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 10 { // through both
			all.Go(func() { echoes(t, p, "Next") })
		}
		all.Wait()
	}
	require.Zero(t, p.Stats().Replaced)
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	_, err := p.Do(ctx, []byte("x"), nil)
	require.True(t, isWithdrawn(err), err)
	require.ErrorIs(t, err, context.Canceled)
}

// TestQueue: as many callers wait as the queue holds; one more is refused.
func TestQueue(t *testing.T) {
	const places = 3
	p := start(t, open(t, "sim:"), Options{Queue: places, Timeout: time.Minute})
	left := begin(t, background(t), p, []byte("wait"))
	var all sync.WaitGroup
	for i := range places {
		all.Go(func() {
			n, err := p.Do(background(t), []byte{byte(i)}, make([]byte, 1))
			assert.NoError(t, err)
			assert.Equal(t, 1, n)
		})
		require.Eventually(t, func() bool { return p.Stats().Waiting == i+1 }, time.Minute, time.Millisecond)
	}
	_, err := p.Do(background(t), []byte("x"), nil)
	require.ErrorIs(t, err, nfcomms.ErrBusy)
	require.NotErrorIs(t, err, nfcomms.ErrUnanswered)
	require.EqualValues(t, 1, p.Stats().Refused)
	require.NoError(t, p.Resize(2))
	all.Wait()
	_, err = p.Do(background(t), []byte("open"), make([]byte, 4))
	require.NoError(t, err)
	require.NoError(t, <-left)
	require.EqualValues(t, places+2, p.Stats().Exchanges)
	none := start(t, open(t, "sim:"), Options{Queue: -1})
	echoes(t, none, "Nobody waits")
}

// TestWaitingEnds: a caller in the queue leaves with its context, and is not counted any more.
func TestWaitingEnds(t *testing.T) {
	p := start(t, open(t, "sim:"), Options{Timeout: time.Minute})
	ctx, cancel := context.WithCancel(background(t))
	left := begin(t, ctx, p, []byte("wait"))
	short, end := context.WithTimeout(background(t), 10*time.Millisecond)
	defer end()
	_, err := p.Do(short, []byte("x"), nil)
	require.True(t, isWithdrawn(err), err)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, p.Stats().Waiting)
	cancel()
	require.ErrorIs(t, <-left, nfcomms.ErrUnanswered)
}

// TestClose: callers that wait and exchanges under way end with ErrClosed; later ones, too.
func TestClose(t *testing.T) {
	dev := open(t, "sim:")
	p := start(t, dev, Options{})
	left := begin(t, background(t), p, []byte("wait"))
	waits := make(chan error, 1)
	go func() {
		_, err := p.Do(background(t), nil, nil)
		waits <- err
	}()
	require.Eventually(t, func() bool { return p.Stats().Waiting == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, p.Close())
	err := <-left
	require.ErrorIs(t, err, nfcomms.ErrClosed)
	require.ErrorIs(t, err, nfcomms.ErrUnanswered)
	require.ErrorIs(t, <-waits, nfcomms.ErrClosed)
	_, err = p.Do(background(t), nil, nil)
	require.ErrorIs(t, err, nfcomms.ErrClosed)
	require.ErrorIs(t, p.Resize(2), nfcomms.ErrClosed)
	require.NoError(t, p.Close())
}

func TestNewRefuses(t *testing.T) {
	dev := open(t, "sim:")
	for name, c := range map[string]struct {
		o    Options
		want error
	}{
		"no program": {Options{Program: nfcomms.Program{Name: "nothing"}}, nfcomms.ErrNoProgram},
		"image":      {Options{Images: [][]byte{[]byte("no image")}}, nfcomms.ErrInvalid},
		"processes":  {Options{Processes: -1}, nfcomms.ErrInvalid},
		"targets":    {Options{Program: nfcomms.Program{Name: "loopback", First: 100}}, nfcomms.ErrInvalid},
	} {
		_, err := New(background(t), dev, c.o)
		require.ErrorIs(t, err, c.want, name)
		var op *nfcomms.OpError
		require.ErrorAs(t, err, &op, name)
	}
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	_, err := New(ctx, dev, Options{Program: nfcomms.Program{Name: "loopback"}})
	require.True(t, isWithdrawn(err), err)
	p := start(t, dev, Options{})
	require.ErrorIs(t, p.Resize(0), nfcomms.ErrInvalid)
	_, err = Call[string, int](background(t), p, "")
	require.ErrorIs(t, err, nfcomms.ErrPointers)
	_, err = Call[int, []int](background(t), p, 1)
	require.ErrorIs(t, err, nfcomms.ErrPointers)
	require.Zero(t, inputs(dev))
}

// TestDeviceCloses: a pool whose device is closed ends by itself.
func TestDeviceCloses(t *testing.T) {
	dev, err := nfcomms.Open(background(t), "sim:")
	require.NoError(t, err)
	p, err := New(background(t), dev, Options{Program: nfcomms.Program{Name: "loopback"}})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	<-p.ended
	_, err = p.Do(background(t), nil, nil)
	require.ErrorIs(t, err, nfcomms.ErrClosed)
	require.NoError(t, p.Close())
}

// TestResize: the number of processes follows, and no exchange is disturbed.
func TestResize(t *testing.T) {
	p := start(t, open(t, "sim:"), Options{})
	var stop atomic.Bool
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := 0; !stop.Load(); n++ {
				echoes(t, p, fmt.Sprintf("Caller %d, %d", i, n))
			}
		})
	}
	for _, size := range []int{5, 1, 8, 2, 2, 20, 3} {
		require.NoError(t, p.Resize(size))
		require.Eventually(t, func() bool { return p.Stats().Running == size }, time.Minute, time.Millisecond)
	}
	stop.Store(true)
	all.Wait()
	s := p.Stats()
	require.Zero(t, s.Failed+s.Retries+s.Replaced)
	require.Equal(t, 3, s.Processes)
}

// TestIslands: processes take the islands of the device in turn.
func TestIslands(t *testing.T) {
	dev := open(t, "sim:?islands=4&managers=4")
	start(t, dev, Options{Processes: 8})
	require.Eventually(t, func() bool { return len(admin.Channels(dev)) == 8 }, time.Minute, time.Millisecond)
	each := make(map[nfcomms.Target]int)
	for _, ch := range admin.Channels(dev) {
		each[ch.Target()/(65536/4)]++
	}
	require.Equal(t, map[nfcomms.Target]int{0: 2, 1: 2, 2: 2, 3: 2}, each)
}
