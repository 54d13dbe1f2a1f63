package mailbox

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// run serves the channel under test until the test ends: it takes every message and transfer, and
// offers again as soon as the host took the last offer. It offers messages while offer is 0, else
// transfers of that size.
func (f *fake) run(offer uint64) (stop func()) {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		r := runner{fake: f, offer: offer}
		r.next()
		for f.await(quit) {
			var s wire.Slot
			for f.pollInto(fakeMailbox, &s) {
				r.answer(&s)
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// await sleeps as an island does until there may be a message; false once quit
// is closed.
func (f *fake) await(quit chan struct{}) bool {
	word := &f.area.Island[0].Word
	for range 100 {
		if f.pending(fakeMailbox) {
			return true
		}
	}
	atomic.StoreUint64(word, 1) // SYNC: island park
	if f.pending(fakeMailbox) {
		atomic.StoreUint64(word, 0)
		return true
	}
	select {
	case <-f.rung:
		return true
	case <-quit:
		return false
	}
}

// runner is a device process that reads and writes for ever.
type runner struct {
	*fake
	offer    uint64
	d2h      uint64 // id of the present offer
	h2d      uint64
	size     [2]uint64
	got      [2]uint64
	consumed [2]uint32
}

// next makes the next offer.
func (r *runner) next() {
	r.d2h++
	if r.offer == 0 {
		r.message(r.d2h, "an offer")
		return
	}
	r.size[abi.D2H], r.got[abi.D2H], r.consumed[abi.D2H] = r.offer, 0, 0
	r.begin(r.d2h, r.offer)
}

func (r *runner) answer(s *wire.Slot) {
	switch wire.Header(s.Header).Type() {
	case wire.TypeDirect:
		r.h2d++
		r.ack(wire.TypeAck, wire.Ack{Transaction: r.h2d, State: wire.StateConsumed})
	case wire.TypeIndBegin:
		r.h2d++
		r.size[abi.H2D], r.got[abi.H2D], r.consumed[abi.H2D] = s.Begin().Size, 0, 0
	case wire.TypeIndList:
		r.list(s)
	case wire.TypeAck:
		r.next()
	case wire.TypeFin:
		if s.Note().Direction == uint32(abi.D2H) {
			r.next()
		}
	case wire.TypeClose:
		r.close(3, s.Close().Generation)
	default:
		late := *s // s itself must not escape: allocations are counted
		r.t.Errorf("unexpected %v", &late)
	}
}

// list moves a gather list and acks every second one.
func (r *runner) list(s *wire.Slot) {
	h := wire.Header(s.Header)
	d, id := abi.H2D, r.h2d
	if h.Length()&wire.ListD2H != 0 {
		d, id = abi.D2H, r.d2h
	}
	for _, e := range s.Gather().Entry[:h.Length()&wire.ListCountMask] {
		r.got[d] += uint64(e.Length())
		if mem := dma(e); d == abi.D2H {
			mem[0] = 'd'
		}
	}
	r.consumed[d]++
	a := wire.Ack{
		Transaction: id, Direction: uint32(d), State: wire.StateMoving, Lists: r.consumed[d],
		Processed: r.got[d], Outstanding: r.size[d] - r.got[d],
	}
	switch {
	case r.got[d] == r.size[d]:
		a.State = wire.StateDone
		r.ack(wire.TypeDone, a)
	case r.consumed[d] == 1 && d == abi.H2D:
		a.State, a.Lists, a.Processed, a.Outstanding = wire.StateReady, 0, 0, r.size[d]
		r.ack(wire.TypeAck, a)
	case r.consumed[d]%2 == 0:
		r.ack(wire.TypeAck, a)
	}
}

// operations is one call of each kind.
var operations = []struct {
	name  string
	offer uint64
	size  int
	call  func(c *channel, ctx context.Context, data []byte) error
}{
	{"Send", 0, 56, (*channel).Send},
	{"Receive", 0, 56, func(c *channel, ctx context.Context, data []byte) error {
		_, err := c.Receive(ctx, data)
		return err
	}},
	{"SendInd/56", 0, 56, (*channel).SendInd},
	{"SendInd/256K", 0, 256 << 10, (*channel).SendInd},
	{"ReceiveInd/56", 56, 56, (*channel).ReceiveInd},
	{"ReceiveInd/256K", 256 << 10, 256 << 10, (*channel).ReceiveInd},
}

func TestOperationsDoNotAllocate(t *testing.T) {
	for _, o := range operations {
		t.Run(o.name, func(t *testing.T) {
			f, _, c := setup(t)
			stop := f.run(o.offer)
			data := pages(o.size)
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			ctx.Done() // made once per context, by the first that waits
			var failed error
			allocs := testing.AllocsPerRun(300, func() {
				if err := o.call(c, ctx, data); err != nil {
					failed = err
				}
			})
			stop()
			require.NoError(t, failed)
			require.Zero(t, allocs)
		})
	}
}

// Blocked calls cost memory only: no goroutine besides the caller's, and the
// live channel works on.
func TestBlockedSendersCostNothing(t *testing.T) {
	f, d, c := setup(t)
	stop := f.run(0)
	dead := d.cur.Load().newChannel(fakeTarget + 1) // of the other mailbox, which nobody serves
	require.True(t, d.cur.Load().table.add(dead))
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(background)
	const blocked = 1000
	waits := make([]func() error, blocked)
	for i := range waits {
		waits[i] = f.async(func() error { return dead.Send(ctx, nil) })
	}
	f.until("one offers, the others queue", func() bool { return dead.send.queue.queued() == blocked-1 })
	for range 100 {
		require.NoError(t, c.Send(background, []byte("live")))
	}
	// The timer of the heartbeat starts a goroutine now and then, which ends.
	f.until("a goroutine for each caller", func() bool { return runtime.NumGoroutine() <= before+blocked })
	f.expect(0, wire.TypeDirect)
	cancel()
	f.expect(0, wire.TypeWithdraw)
	var s wire.Slot
	*s.Note() = wire.Note{Transaction: 1}
	f.put(0, wire.MakeHeader(wire.TypeWithdrawn, abi.PayloadSize, 1, 1, fakeTarget+1), s)
	for _, wait := range waits {
		require.ErrorIs(t, wait(), bridge.ErrWithdrawn)
	}
	stop()
	require.Zero(t, d.Stats().Faults)
}

// Many callers on both halves, with contexts that end at any time: what the
// device counted equals the host's count.
func TestStorm(t *testing.T) {
	f, d, c := setup(t)
	stop := f.run(0)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			data := pages(100 + i*30000)
			for range 200 {
				if err := c.Send(background, data[:i]); err != nil {
					t.Error(err)
				}
				if err := c.SendInd(background, data); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		buf := make([]byte, 56)
		for range 800 {
			if _, err := c.Receive(background, buf); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	stop()
	s := d.Stats()
	require.EqualValues(t, 800, s.Direct.H2D.Messages)
	require.EqualValues(t, 800, s.Indirect.H2D.Messages)
	require.EqualValues(t, 800, s.Direct.D2H.Messages)
	require.Zero(t, s.Faults)
	require.Zero(t, s.Blocked)
}

func BenchmarkOperations(b *testing.B) {
	for _, o := range operations {
		b.Run(o.name, func(b *testing.B) {
			f := newFake(b)
			d := f.open()
			c := f.subscribe(d)
			stop := f.run(o.offer)
			data := pages(o.size)
			b.ReportAllocs()
			b.SetBytes(int64(o.size))
			for b.Loop() {
				if err := o.call(c, background, data); err != nil {
					b.Fatal(err)
				}
			}
			stop()
		})
	}
}
