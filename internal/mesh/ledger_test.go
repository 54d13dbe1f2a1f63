//go:build cgo

package mesh

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// ledgerOps are puts and gets of the campaign; docs/record.md has a run of 1,000,000.
var ledgerOps = flag.Int("ledger.ops", 4000, "puts and gets of the ledger campaign")

const (
	ledgerNodes = 9
	ledgerSlots = 4 // of each node in each window
	ledgerSlot  = 8192
)

// campaign is nine nodes that put and get while everything breaks.
type campaign struct {
	m       *Mesh
	mem     [ledgerNodes][]byte
	window  [ledgerNodes]atomic.Pointer[Window]
	left    atomic.Int64 // operations that have not begun
	ok      atomic.Int64
	refused [4]atomic.Int64 // in the order of ledgerErrors
	faults  [4]int          // links cut, wires changed, nodes that died loudly and silently
}

// ledgerErrors are how calls may end.
var ledgerErrors = [4]error{ErrUnreachable, ErrWindow, ErrDead, context.DeadlineExceeded}

// slot is what a part of a window may hold, byte by byte: fillings of puts that did not
// end well, after the last that did.
type slot struct {
	size int
	may  []byte
}

// TestLedger: whatever breaks, what was put stays put, what is got was put, no packet
// comes twice or changed, and every call ends.
func TestLedger(t *testing.T) {
	m := open(t, Config{
		Side: [3]int{3, 3, 1}, Threads: 2, Whole: true, Ask: 2 * time.Millisecond,
		Beat: 10 * time.Millisecond, Retry: 2 * time.Millisecond, Silence: 150 * time.Millisecond,
	})
	c := &campaign{m: m}
	c.left.Store(int64(*ledgerOps))
	for i := range c.mem {
		c.mem[i] = make([]byte, ledgerNodes*ledgerSlots*ledgerSlot)
		c.window[i].Store(window(t, m, i, c.mem[i], Read|Write))
	}
	begin, done := time.Now(), make(chan struct{})
	var vandals, writers sync.WaitGroup
	vandals.Go(func() { c.vandalize(t, done) })
	vandals.Go(func() { c.packets(t, done) })
	for node := range ledgerNodes {
		writers.Go(func() { c.work(t, node) })
	}
	writers.Wait()
	close(done)
	vandals.Wait()
	total, err := m.Totals()
	require.NoError(t, err)
	require.Zero(t, total.Changed)
	require.Zero(t, total.Doubled)
	took := time.Since(begin).Round(time.Millisecond)
	summary := fmt.Sprintf("%d puts and gets in %v ended well", c.ok.Load(), took)
	for i, e := range ledgerErrors {
		summary += fmt.Sprintf(", %d: %v", c.refused[i].Load(), e)
	}
	t.Logf("%s; %d packets came, %d repeated by links; %d cuts, %d other wires, %d nodes killed, %d silently",
		summary, total.Came, total.Repeated, c.faults[0], c.faults[1], c.faults[2], c.faults[3])
}

// work has a node put to its slots of all windows, and get them, until no operations
// are left; then it looks at each of its slots once more.
func (c *campaign) work(t *testing.T, node int) {
	random := rand.New(rand.NewPCG(uint64(node), 77))
	var slots [ledgerNodes][ledgerSlots]slot
	for to := range slots {
		for i := range slots[to] {
			slots[to][i] = slot{size: 1 + random.IntN(ledgerSlot), may: []byte{0}}
		}
	}
	data := make([]byte, ledgerSlot)
	for n := 0; c.left.Add(-1) >= 0; n++ {
		to, i := random.IntN(ledgerNodes), random.IntN(ledgerSlots)
		s := &slots[to][i]
		if random.IntN(3) == 0 {
			c.get(t, node, to, i, s, data[:s.size])
			continue
		}
		for b := range data[:s.size] {
			data[b] = byte(n)
		}
		s.may = append(s.may, byte(n))
		if c.do(t, node, to, func(ctx context.Context, r Remote) error {
			return c.m.Put(ctx, node, r, offset(node, i), data[:s.size])
		}) {
			s.may = []byte{byte(n)}
		}
	}
	for to := range slots {
		for i := range slots[to] {
			for s := &slots[to][i]; !c.get(t, node, to, i, s, data[:s.size]); {
				if t.Failed() {
					return
				}
			}
		}
	}
}

func offset(node, i int) uint64 { return uint64((node*ledgerSlots + i) * ledgerSlot) }

// get reports whether it read a slot, and holds that to the ledger.
func (c *campaign) get(t *testing.T, node, to, i int, s *slot, buf []byte) bool {
	if !c.do(t, node, to, func(ctx context.Context, r Remote) error { return c.m.Get(ctx, node, r, offset(node, i), buf) }) {
		return false
	}
	var may [256]bool
	for _, b := range s.may {
		may[b] = true
	}
	for at, b := range buf {
		if !may[b] {
			t.Errorf("node %d, slot %d at node %d: byte %d is %d, none of %v", node, i, to, at, b, s.may)
			break
		}
	}
	return true
}

// do reports whether an operation ended well, and counts how it ended else.
func (c *campaign) do(t *testing.T, node, to int, op func(context.Context, Remote) error) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := op(ctx, c.window[to].Load().Remote())
	if err == nil {
		c.ok.Add(1)
		return true
	}
	for i, want := range ledgerErrors {
		if errors.Is(err, want) {
			c.refused[i].Add(1)
			time.Sleep(100 * time.Microsecond) // the way or the node has to come back
			return false
		}
	}
	t.Errorf("node %d to %d: %v", node, to, err)
	return false
}

// packets keeps packets of the mesh's own under way beside puts and gets.
func (c *campaign) packets(t *testing.T, done <-chan struct{}) {
	for {
		err := c.m.Start(Load{From: All, To: All, Size: 1500, Count: 5})
		if err != nil && !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
		select {
		case <-done:
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// vandalize breaks something and mends it, again and again, and leaves all well.
func (c *campaign) vandalize(t *testing.T, done <-chan struct{}) {
	random := rand.New(rand.NewPCG(1, 2))
	for ended := false; !ended; {
		node, link, what := random.IntN(ledgerNodes), random.IntN(4), random.IntN(8)
		mend := c.damage(t, random, node, link, what)
		select {
		case <-done:
			ended = true
		case <-time.After(time.Duration(1+random.IntN(6)) * time.Millisecond):
		}
		mend()
	}
	for node := range ledgerNodes {
		for link := range 4 {
			require.NoError(t, c.m.Break(node, link, Faults{Seed: 1}))
		}
	}
}

// damage breaks one thing, and returns what mends it.
func (c *campaign) damage(t *testing.T, random *rand.Rand, node, link, what int) func() {
	rates := []float64{0, 1e-6, 1e-5, 1e-4, 1e-3}
	rate := func() float64 { return rates[random.IntN(len(rates))] }
	switch {
	case what < 4:
		c.faults[1]++
		require.NoError(t, c.m.Break(node, link, Faults{
			Seed: random.Uint64(), Flip: rate(), Drop: rate(), Repeat: rate(), Stall: rate() / 10, StallFor: 10 * time.Microsecond,
		}))
		return func() {} // it stays until it is another
	case what < 7:
		c.faults[0]++
		require.NoError(t, c.m.Cut(node, link, true))
		return func() { require.NoError(t, c.m.Cut(node, link, false)) }
	}
	silent := random.IntN(2)
	c.faults[2+silent]++
	require.NoError(t, c.m.Kill(node, true, silent == 1))
	require.NoError(t, c.m.Settle(t.Context(), func(int, []abi.Diagnostic) bool { return !c.alive(node) }))
	return func() {
		require.NoError(t, c.m.Kill(node, false, false))
		require.NoError(t, c.m.Settle(t.Context(), func(int, []abi.Diagnostic) bool { return c.alive(node) }))
		c.window[node].Load().Revoke()
		w, err := c.m.Window(node, c.mem[node], Read|Write)
		require.NoError(t, err)
		c.window[node].Store(w)
	}
}

func (c *campaign) alive(node int) bool {
	s, err := c.m.State(node)
	return err == nil && s.Alive
}
