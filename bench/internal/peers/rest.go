package peers

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

const (
	restGap   = time.Millisecond // the device's threads sleep long before
	restSends = 100              // in a round
)

// Rest is what a message takes that finds a device at rest, as rare messages do, beside two
// processes that wake one another by futexes.
type Rest struct {
	GapMs float64 `json:"gap_ms"`
	Sends int     `json:"sends"`
	// P50Ns and P99Ns are of one send, which returns with the device's ack.
	P50Ns float64 `json:"p50_ns"`
	P99Ns float64 `json:"p99_ns"`
	// FutexNs is the median of a wake-up there and back; 0 if it is not measured.
	FutexNs float64 `json:"futex_ns"`
	missing string  // why
}

// measureRest has rounds of sends that the device does not expect, and of the futexes.
func measureRest(ctx context.Context, dev *nfcomms.Device, rounds int) (r Rest, err error) {
	p, err := compare.Start(ctx, dev, "sink", 1)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Stop(ctx)) }()
	other := compare.NativeFutex.Program(ctx)
	defer func() { err = errors.Join(err, other.Remove()) }()
	sends, futexes := stat.NewRecorder(), stat.NewRecorder()
	r.missing = other.Missing
	for range rounds {
		if err := restRound(ctx, p.Chans[0], sends); err != nil {
			return r, err
		}
		if r.missing == "" {
			r.missing = futexRound(ctx, other, futexes)
		}
	}
	s := sends.Stat(1)
	r.GapMs, r.Sends, r.P50Ns, r.P99Ns = float64(restGap)/1e6, s.N, s.P50, s.P99
	r.FutexNs = futexes.Stat(1).P50
	return r, nil
}

// restRound records sends with a pause before each.
func restRound(ctx context.Context, ch *nfcomms.Channel, to *stat.Recorder) error {
	msg := compare.Buffer(compare.MessageSize)
	pause := time.NewTicker(restGap)
	defer pause.Stop()
	for range restSends {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		start := time.Now()
		if err := ch.Send(ctx, msg); err != nil {
			return err
		}
		to.Record(time.Since(start))
	}
	return nil
}

// futexRound records wake-ups there and back, or returns why there are none.
func futexRound(ctx context.Context, p *compare.NativeProgram, to *stat.Recorder) (missing string) {
	run, err := p.Run(ctx, 2, "echo", compare.MessageSize, compare.NativeSlots, compare.NativeBatches, 1, compare.NativeMillis, 0, 0)
	if err != nil {
		return cli.ResultNotMeasured + err.Error()
	}
	for _, ns := range run.Batches {
		to.Record(time.Duration(ns))
	}
	return ""
}

// goal decides T4.
func (r Rest) goal() cli.Goal {
	g := cli.Goal{ID: "T4", What: "56 B Send to a device at rest : wake-ups by futex there and back, median", Target: 1.3, AtMost: true}
	if r.missing != "" {
		return g.Decide(strings.TrimPrefix(r.missing, cli.ResultNotMeasured))
	}
	g.Value = r.P50Ns / r.FutexNs
	return g.Decide("")
}

// String is the line of the report.
func (r Rest) String() string {
	text := "Send to a device at rest, every " + units.Duration(r.GapMs*1e6) + ": p50 " + units.Duration(r.P50Ns) +
		", p99 " + units.Duration(r.P99Ns) + "; wake-ups by futex there and back, in C: "
	if r.missing != "" {
		return text + r.missing
	}
	return text + units.Duration(r.FutexNs)
}
