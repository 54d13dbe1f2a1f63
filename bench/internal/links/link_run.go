package links

import (
	"context"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/model"
)

// Pieces that memcpy copies from and to. A link is given one packet again and again, and has
// timedDepth words of such under way: what it copies is near in the caches.
const (
	farPieces  = 512 // more than a cache holds near
	nearPieces = timedDepth / (mesh.PacketMax / papers.WordBytes)
)

// copyRate copies pieces of a packet's size for a time, from so many to so many: MB/s by the
// clock, and by the time of the processor.
func copyRate(d time.Duration, sources, places int) (clock, cpu float64) {
	from, to := make([]byte, sources*mesh.PacketMax), make([]byte, places*mesh.PacketMax)
	bytes := 0
	used, begin := cli.CPUTime(), time.Now()
	for time.Since(begin) < d {
		for i := range farPieces { // as many for one look at the clock
			bytes += copy(to[i%places*mesh.PacketMax:][:mesh.PacketMax], from[i%sources*mesh.PacketMax:])
		}
	}
	clock = float64(bytes) / time.Since(begin).Seconds() / 1e6
	return clock, float64(bytes) / max((cli.CPUTime()-used).Seconds(), 1e-9) / 1e6
}

// threeNodes is a ring of which 0 and 1 send to each other over one link, in both
// directions.
var threeNodes = [3]int{3, 1, 1}

// A machine that is busy keeps threads of nodes waiting: links must not take that for
// a fault.
const (
	patientRetry   = 5 * time.Millisecond
	patientSilence = 10 * time.Second
)

// timedDepth is that of the FIFOs of links that run by the clock, in words.
const timedDepth = 2048

// endless is a load that a run ends before.
const endless = 1 << 40

// linkByCycles saturates a link in both directions where a nanosecond is a cycle and
// the wire as long as the report's, and returns payload words a cycle.
func linkByCycles(ctx context.Context, classic bool, depth, cycles int) (float64, error) {
	flight := papers.PaperFlight
	m, err := mesh.Open(mesh.Config{
		Side: threeNodes, Classic: classic, Depth: depth, Buffer: 8192, Period: papers.CreditPeriod,
		Wait:       time.Duration(flight.Wait(papers.CreditPeriod)),
		CreditIdle: papers.CreditPeriod,
		WordPS:     1000, Slack: 4, Delay: time.Duration(flight.Data + flight.Local),
		Beat: 100 * time.Microsecond, Retry: 20 * time.Microsecond, Silence: 10 * time.Millisecond,
	})
	if err != nil {
		return 0, err
	}
	defer m.Close()
	if err := m.Settle(ctx, mesh.Well); err != nil {
		return 0, err
	}
	for from := range 2 {
		if err := m.Start(mesh.Load{From: from, To: 1 - from, Size: mesh.PacketMax, Count: endless}); err != nil {
			return 0, err
		}
	}
	if err := m.Step(20*time.Microsecond, 1); err != nil {
		return 0, err
	}
	before, err := m.Totals()
	if err != nil {
		return 0, err
	}
	for left := cycles; left > 0 && ctx.Err() == nil; left -= 10000 {
		if err := m.Step(time.Duration(min(left, 10000)), 1); err != nil {
			return 0, err
		}
	}
	after, err := m.Totals()
	return float64(after.Bytes-before.Bytes) / 2 / papers.WordBytes / float64(cycles), err
}

// timed runs a link by the clock, with words that are bad at a rate.
func (o *LinkOptions) timed(ctx context.Context, rate float64) (*LinkTimed, error) {
	c := mesh.Config{
		Side: threeNodes, Threads: o.Threads, Spin: 50 * time.Microsecond, Depth: timedDepth, Buffer: 2 * timedDepth, WireWords: 8192,
		Retry: patientRetry, Silence: patientSilence,
	}
	if o.rate > 0 {
		c.WordPS = uint64(papers.WordBytes / papers.Code8b10b.Rate(o.rate) * 1e12)
	}
	m, err := mesh.Open(c)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if err := m.Settle(ctx, mesh.Well); err != nil {
		return nil, err
	}
	for node, link := range []int{0, 1} { // x+ of 0 is x- of 1
		f := mesh.Faults{Seed: uint64(node) + 1, Flip: rate, Drop: rate, Repeat: rate}
		if err := m.Break(node, link, f); err != nil {
			return nil, err
		}
	}
	if err := m.Start(mesh.Load{From: 0, To: 1, Size: mesh.PacketMax, Count: endless}); err != nil {
		return nil, err
	}
	return linkMeasured(ctx, m, o.Time, rate)
}

// mostTries is how often a link is measured that has moved nothing yet.
const mostTries = 100

// linkMeasured looks at the link from node 0 to 1 for a time, and once more while nothing moved in it.
func linkMeasured(ctx context.Context, m *mesh.Mesh, d time.Duration, rate float64) (*LinkTimed, error) {
	if err := pause(ctx, d/10); err != nil { // the window grows
		return nil, err
	}
	before, err := m.State(1)
	if err != nil {
		return nil, err
	}
	used, begin := cli.CPUTime(), time.Now()
	after := before
	for tries := 0; tries < mostTries && after.Bytes == before.Bytes; tries++ { // others may have the processors
		if err := pause(ctx, d); err != nil {
			return nil, err
		}
		if after, err = m.State(1); err != nil {
			return nil, err
		}
	}
	took, usedFor := time.Since(begin).Seconds(), max((cli.CPUTime()-used).Seconds(), 1e-9)
	sender, err := m.State(0)
	if err != nil {
		return nil, err
	}
	out, in := sender.Links[0], after.Links[1]
	moved := float64(after.Bytes-before.Bytes) / 1e6
	t := &LinkTimed{
		Flow: "cumulative", ErrorRate: rate, MBs: moved / took, CPUMBs: moved / usedFor,
		Packets: out.Packets, Repeated: out.Repeated, Errors: out.Errors + in.Errors,
		RoundTripS: out.RoundTrip.Seconds(), Window: out.Window, Changed: after.Changed, Doubled: after.Doubled,
	}
	t.ErrorBound = model.ErrorBound(int(t.Errors), float64(out.WordsTaken+in.WordsTaken), 0.95)
	if t.Changed > 0 || t.Doubled > 0 {
		return nil, fmt.Errorf("link at an error rate of %g: %d packets changed, %d doubled", rate, t.Changed, t.Doubled)
	}
	return t, nil
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// broken reports whether a diagnostic word has a link broken.
func broken(d abi.Diagnostic, link int) bool {
	return d.Valid() && d.Reading(uint(abi.DiagXPlus)-2*uint(link)) == abi.Broken
}
