//go:build cgo

package mesh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

func window(t *testing.T, m *Mesh, node int, mem []byte, a Access) *Window {
	t.Helper()
	w, err := m.Window(node, mem, a)
	require.NoError(t, err)
	return w
}

func pattern(seed uint64, n int) []byte {
	b := make([]byte, n)
	random := rand.New(rand.NewPCG(seed, 1))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// TestPutAndGet: any size and offset, near, far and in the node itself.
func TestPutAndGet(t *testing.T) {
	m := open(t, quick(3, 2, 1))
	mem := make([]byte, 300_000)
	w := window(t, m, 4, mem, Read|Write)
	for i, c := range []struct{ from, offset, size int }{
		{0, 0, 1}, {0, 4095, 2}, {1, 4096 * 3, 4096}, {4, 100, 5000}, {0, 17, 250_000}, {3, 299_999, 1}, {0, 300_000, 0}, {5, 0, 300_000},
	} {
		data, got := pattern(uint64(i), c.size), make([]byte, c.size)
		before := bytes.Clone(mem)
		require.NoError(t, m.Put(t.Context(), c.from, w.Remote(), uint64(c.offset), data))
		copy(before[c.offset:], data)
		require.True(t, bytes.Equal(before, mem), "put %d: nothing else changes", i)
		require.NoError(t, m.Get(t.Context(), c.from, w.Remote(), uint64(c.offset), got))
		require.True(t, bytes.Equal(data, got), "get %d", i)
	}
	s, err := m.State(4)
	require.NoError(t, err)
	require.Positive(t, s.Access.Served)
	require.Positive(t, s.Access.Hits)
	require.Positive(t, s.Access.Misses)
	require.Zero(t, s.Access.Malformed)
}

// TestWrongPutsAndGets: each is refused with its own error, and changes nothing.
func TestWrongPutsAndGets(t *testing.T) {
	m := open(t, quick(3, 1, 1))
	mem := pattern(1, 10_000)
	before := bytes.Clone(mem)
	rw, ro, wo := window(t, m, 1, mem, Read|Write), window(t, m, 1, mem, Read), window(t, m, 1, mem, Write)
	buf := make([]byte, 100)
	for name, c := range map[string]struct {
		to     Remote
		offset uint64
		n      int
		want   error
	}{
		"a wrong key":                {Remote{1, rw.Remote().Key ^ 1}, 0, 100, ErrWindow},
		"no key":                     {Remote{1, 0}, 0, 100, ErrWindow},
		"a key of another node":      {Remote{2, rw.Remote().Key}, 0, 100, ErrWindow},
		"one byte beyond the end":    {rw.Remote(), 9_901, 100, bridge.ErrRange},
		"far beyond the end":         {rw.Remote(), 1 << 40, 100, bridge.ErrRange},
		"an offset that wraps":       {rw.Remote(), math.MaxUint64 - 50, 100, bridge.ErrRange},
		"the last offset there is":   {rw.Remote(), math.MaxUint64 - 100, 100, bridge.ErrRange},
		"a node that is not":         {Remote{3, rw.Remote().Key}, 0, 100, ErrUnknown},
		"a node of a negative index": {Remote{-1, rw.Remote().Key}, 0, 100, ErrUnknown},
		"nothing, beyond the end":    {rw.Remote(), 10_001, 0, bridge.ErrRange},
		"nothing, for no key":        {Remote{1, 0}, 0, 0, ErrWindow},
	} {
		require.ErrorIs(t, m.Put(t.Context(), 0, c.to, c.offset, buf[:c.n]), c.want, name)
		require.ErrorIs(t, m.Get(t.Context(), 0, c.to, c.offset, buf[:c.n]), c.want, name)
	}
	require.ErrorIs(t, m.Put(t.Context(), 0, ro.Remote(), 0, buf), ErrAccess)
	require.ErrorIs(t, m.Get(t.Context(), 0, wo.Remote(), 0, buf), ErrAccess)
	require.NoError(t, m.Get(t.Context(), 0, ro.Remote(), 9_900, buf))
	require.True(t, bytes.Equal(before, mem))
	for _, bad := range []Access{0, -1, 4, 7} {
		_, err := m.Window(1, mem, bad)
		require.ErrorIs(t, err, bridge.ErrInvalid)
	}
	_, err := m.Window(1, nil, Read)
	require.ErrorIs(t, err, bridge.ErrInvalid)
	_, err = m.Window(3, mem, Read)
	require.ErrorIs(t, err, ErrUnknown)
	_, err = m.Window(1, make([]byte, WindowMax+1), Read)
	require.ErrorIs(t, err, bridge.ErrTooLarge)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, m.Put(ctx, 0, rw.Remote(), 0, buf), context.Canceled)
}

// TestWindowsAreBounded: the next is refused, and there is room again after a Revoke.
func TestWindowsAreBounded(t *testing.T) {
	m := open(t, quick(2, 1, 1))
	var all []*Window
	mem := make([]byte, 8192)
	for range WindowsMax {
		all = append(all, window(t, m, 1, mem, Read))
	}
	_, err := m.Window(1, mem, Read)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	for i, w := range all {
		if i%2 == 0 {
			w.Revoke()
			w.Revoke()
		}
	}
	for i, w := range all {
		want := error(nil)
		if i%2 == 0 {
			want = ErrWindow
		}
		require.ErrorIs(t, m.Get(t.Context(), 0, w.Remote(), 5000, make([]byte, 10)), want)
	}
	big := make([]byte, WindowMax)
	for range 3 { // 192 MiB, and what the small ones have
		window(t, m, 1, big, Read)
	}
	_, err = m.Window(1, big, Read)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	window(t, m, 1, mem, Read)
}

// TestRevokeUnderLoad: after Revoke nothing touches the memory, and all that come are
// refused.
func TestRevokeUnderLoad(t *testing.T) {
	m := open(t, quick(3, 1, 1))
	for round := range 20 {
		mem := make([]byte, 64<<10)
		w := window(t, m, 1, mem, Read|Write)
		var writers sync.WaitGroup
		var begun atomic.Int32
		for from := range 3 {
			writers.Go(func() {
				data := pattern(uint64(round), 50_000)
				for {
					err := m.Put(t.Context(), from, w.Remote(), uint64(from), data)
					begun.Add(1)
					if err != nil {
						require.ErrorIs(t, err, ErrWindow)
						return
					}
				}
			})
		}
		for begun.Load() < 3 {
			time.Sleep(10 * time.Microsecond) // until there is load
		}
		w.Revoke()
		clear(mem)
		writers.Wait()
		require.True(t, bytes.Equal(mem, make([]byte, len(mem))), "round %d", round)
	}
}

// TestDeadNodes: a request to a dead node fails, and a node that dies sends no more.
func TestDeadNodes(t *testing.T) {
	m := open(t, quick(3, 1, 1))
	w := window(t, m, 1, make([]byte, 4096), Read|Write)
	require.NoError(t, m.Kill(1, true, false))
	dead := func(int, []abi.Diagnostic) bool {
		s, err := m.State(1)
		return err != nil || !s.Alive
	}
	require.NoError(t, m.Settle(t.Context(), dead))
	_, err := m.Window(1, make([]byte, 1), Read)
	require.ErrorIs(t, err, ErrDead)
	require.ErrorIs(t, m.Put(t.Context(), 1, w.Remote(), 0, make([]byte, 8)), ErrDead)
	require.ErrorIs(t, m.Put(t.Context(), 0, w.Remote(), 0, make([]byte, 8)), ErrUnreachable)
	require.NoError(t, m.Kill(1, false, false))
	require.NoError(t, m.Settle(t.Context(), Well))
	require.ErrorIs(t, m.Put(t.Context(), 0, w.Remote(), 0, make([]byte, 8)), ErrWindow, "it knows nothing of before")
	w.Revoke()
	w = window(t, m, 1, make([]byte, 4096), Write)
	require.NoError(t, m.Put(t.Context(), 0, w.Remote(), 0, make([]byte, 8)))
}

// TestUnderWayAtTheEnd: what is under way when its node dies, the mesh is closed or
// ctx ends returns with that.
func TestUnderWayAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(m *Mesh, cancel func())
		want error
	}{
		"death": {func(m *Mesh, _ func()) { _ = m.Kill(0, true, true) }, ErrDead},
		"close": {func(m *Mesh, _ func()) { m.Close() }, ErrClosed},
		"ctx":   {func(_ *Mesh, cancel func()) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, quick(3, 1, 1))
			w := window(t, m, 1, make([]byte, 1<<20), Read|Write)
			require.NoError(t, m.Kill(1, true, true)) // it answers no more, and nobody knows
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			errs := make(chan error)
			for i := range 5 {
				go func() { errs <- m.Put(ctx, 0, w.Remote(), 0, make([]byte, 1000*i+1)) }()
			}
			require.Eventually(t, func() bool {
				s, err := m.State(0)
				return err == nil && s.Access.Repeated > 0
			}, time.Minute, time.Millisecond)
			c.end(m, cancel)
			for range 5 {
				require.ErrorIs(t, <-errs, c.want)
			}
		})
	}
}

// TestCallersWaitWithoutThreads: those that wait cost a goroutine each, and end as their
// context does, or the mesh.
func TestCallersWaitWithoutThreads(t *testing.T) {
	m := open(t, quick(2, 1, 1))
	w := window(t, m, 1, make([]byte, 4096), Read|Write)
	require.NoError(t, m.Kill(1, true, true)) // it answers no more, and nobody knows
	threads := pprof.Lookup("threadcreate")
	before := threads.Count()
	const callers = 1000
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	canceled, closed := make(chan error, callers/2), make(chan error, callers/2)
	for range callers / 2 {
		go func() { canceled <- m.Put(ctx, 0, w.Remote(), 0, make([]byte, 8)) }()
		go func() { closed <- m.Get(t.Context(), 0, w.Remote(), 0, make([]byte, 8)) }()
	}
	require.Eventually(t, func() bool {
		s, err := m.State(0)
		return err == nil && s.Access.Begun == callers
	}, time.Minute, time.Millisecond)
	cancel()
	for range callers / 2 {
		require.ErrorIs(t, <-canceled, context.Canceled)
	}
	m.Close()
	for range callers / 2 {
		require.ErrorIs(t, <-closed, ErrClosed)
	}
	require.Less(t, threads.Count()-before, callers/10)
}

// TestPutsOverBadWires is a property: whatever words suffer and whichever links are
// cut, a window holds in the end what was put last, all that is got was put, and each
// call ends. Each writer has a part of the window, and knows what is in it.
func TestPutsOverBadWires(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { putsOverBadWires(t, seed, 60) })
	}
}

func putsOverBadWires(t *testing.T, seed uint64, rounds int) {
	c := quick(3, 3, 1)
	c.Ask, c.Beat, c.Retry = 2*time.Millisecond, 5*time.Millisecond, 2*time.Millisecond
	m := open(t, c)
	for node := range m.Nodes() {
		for link := range 4 {
			f := Faults{Seed: seed*100 + uint64(node*4+link), Flip: 2e-4, Drop: 2e-4, Repeat: 2e-4}
			require.NoError(t, m.Break(node, link, f))
		}
	}
	const part = 20_000
	var windows [9]*Window
	mem := make([]byte, 9*9*part)
	for i := range windows {
		windows[i] = window(t, m, i, mem[i*9*part:(i+1)*9*part], Read|Write)
	}
	done := make(chan struct{})
	var cutter, writers sync.WaitGroup
	cutter.Go(func() { cutAndMend(m, seed, done) })
	for node := range 9 {
		writers.Go(func() { writeAndRead(t, m, node, windows, seed, rounds) })
	}
	writers.Wait()
	close(done)
	cutter.Wait()
}

// cutAndMend cuts a link and mends it, again and again.
func cutAndMend(m *Mesh, seed uint64, done <-chan struct{}) {
	random := rand.New(rand.NewPCG(seed, 2))
	for {
		node, link := random.IntN(9), random.IntN(4)
		for _, cut := range []bool{true, false} {
			if m.Cut(node, link, cut) != nil {
				return
			}
			select {
			case <-done:
				_ = m.Cut(node, link, false)
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	}
}

// writeAndRead puts to a node's parts of all windows and gets them back. A call that
// finds no way is made again: then what is there is one of the two.
func writeAndRead(t *testing.T, m *Mesh, node int, windows [9]*Window, seed uint64, rounds int) {
	random := rand.New(rand.NewPCG(seed, uint64(node)+10))
	again := func(fn func() error) {
		for {
			err := fn()
			if err == nil {
				return
			}
			if !errors.Is(err, ErrUnreachable) {
				t.Errorf("node %d: %v", node, err)
				return
			}
		}
	}
	const part = 20_000
	for round := range rounds {
		to := random.IntN(9)
		size := 1 + random.IntN(part)
		offset := random.IntN(part - size + 1)
		data, got := pattern(random.Uint64(), size), make([]byte, size)
		again(func() error {
			return m.Put(t.Context(), node, windows[to].Remote(), uint64(node*part+offset), data)
		})
		again(func() error {
			return m.Get(t.Context(), node, windows[to].Remote(), uint64(node*part+offset), got)
		})
		if !bytes.Equal(data, got) {
			t.Errorf("node %d, round %d: what was put to node %d is not there", node, round, to)
			return
		}
	}
}

// TestMeasureLookups: a few pages are all in the cache, many are not.
func TestMeasureLookups(t *testing.T) {
	few, err := MeasureLookups(1, 1000)
	require.NoError(t, err)
	require.EqualValues(t, 1, few.Hits)
	many, err := MeasureLookups(4096, 10_000)
	require.NoError(t, err)
	require.Less(t, many.Hits, 0.1)
	require.Positive(t, many.Linear)
	for _, pages := range []int{0, -1, 4097} {
		_, err = MeasureLookups(pages, 1)
		require.ErrorIs(t, err, bridge.ErrInvalid)
	}
}

// TestOwnClockPuts: without threads, the waiting caller lets time pass.
func TestOwnClockPuts(t *testing.T) {
	m := open(t, Config{Side: [3]int{2, 1, 1}, Beat: 100 * time.Microsecond, Retry: 20 * time.Microsecond, Silence: 10 * time.Millisecond})
	mem := make([]byte, 10_000)
	w := window(t, m, 1, mem, Read|Write)
	data := pattern(3, len(mem))
	var both sync.WaitGroup
	for from := range 2 {
		both.Go(func() {
			half := uint64(from * 5000)
			if err := m.Put(t.Context(), from, w.Remote(), half, data[half:half+5000]); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	require.True(t, bytes.Equal(data, mem))
}
