package scripted

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// stampLies are what a device may claim of when it began and was done. wrong: a host that knows the
// device's clock counts it.
var stampLies = []struct {
	name  string
	lie   func(a *wire.Ack)
	wrong bool
}{
	{"the truth", func(*wire.Ack) {}, false},
	{"nothing", func(a *wire.Ack) { a.BeginNS, a.NowNS = 0, 0 }, false},
	{"the end of time", func(a *wire.Ack) { a.BeginNS, a.NowNS = math.MaxInt64, math.MaxInt64 }, true},
	{"the middle of time", func(a *wire.Ack) { a.BeginNS, a.NowNS = 1<<63, 1<<63 }, true},
	{"an hour late", func(a *wire.Ack) { a.NowNS += uint64(time.Hour) }, true},
	{"an hour early", func(a *wire.Ack) { a.NowNS -= uint64(time.Hour) }, true},
	{"began at the end", func(a *wire.Ack) { a.BeginNS = math.MaxInt64 }, true},
}

// TestLyingStamps: whatever a device claims in its stamps, every call delivers, no layer of it is
// negative and they add up to the whole; what cannot be true is reported.
func TestLyingStamps(t *testing.T) {
	for _, eager := range []int{0, wire.EagerEntries} {
		sh := quickBeat
		sh.Eager = eager
		for _, l := range stampLies {
			t.Run(l.name, func(t *testing.T) {
				r := newRig(t, sh)
				ch := r.Subscribe(r.dev, abi.TargetLoopback)
				r.s.SetHooks(Hooks{Give: func(m wire.Slot) []wire.Slot {
					switch wire.Header(m.Header).Type() {
					case wire.TypeAck, wire.TypeDone:
						l.lie(m.Ack())
					}
					return []wire.Slot{m}
				}})
				data := make([]byte, 5000)
				message := func(ctx context.Context) error { return ch.Send(ctx, data[:7]) }
				take := func(ctx context.Context) error { _, err := ch.Receive(ctx, data); return err }
				transfer := func(ctx context.Context) error { return ch.SendInd(ctx, data) }
				fetch := func(ctx context.Context) error { return ch.ReceiveInd(ctx, data) }
				r.measured(message, abi.H2D, false, l.wrong)
				r.measured(take, abi.D2H, false, false) // its device stamps nothing
				r.measured(transfer, abi.H2D, true, l.wrong)
				r.measured(fetch, abi.D2H, true, l.wrong)
			})
		}
	}
}

// measured makes a call with a record, and cuts it into layers with and without the device's clock.
func (r *rig) measured(call func(context.Context) error, d abi.Direction, transfer, wrong bool) {
	r.Helper()
	var ctx stamp.Context
	ctx.Begin()
	require.NoError(r, call(ctx.Of(r.Ctx())))
	ctx.Record.Lap(stamp.Return)
	for _, c := range []stamp.Clock{{}, {Known: true, Offset: r.s.clock() - int64(meter.Now()), Error: time.Second}} {
		laps, counted := ctx.Record.Split(c, d, transfer)
		var whole time.Duration
		for l, took := range laps {
			require.GreaterOrEqual(r, took, time.Duration(0), "%v", stamp.Layer(l))
			whole += took
		}
		require.Equal(r, ctx.Record.Whole(), whole)
		if c.Known {
			require.Equal(r, wrong, counted)
		}
	}
}

// clock returns what the device's clock shows.
func (s *Device) clock() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(time.Since(s.cur.born))
}
