package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// Effort of measuring the price of tracing.
const (
	tracingEvery  = 64 // the tracer's own default
	tracingBatch  = 100
	tracingRounds = 40              // in a test; the devices change places after each
	tracingSlice  = 50              // batches of each device and direction in a round
	tracingTime   = 3 * time.Second // after which a test makes no further rounds
	tracingMost   = 1.02
)

// Tracing is what messages of 56 bytes take where one call in so many is traced, beside those of
// a device that is not: medians of batches.
type Tracing struct {
	Every   int          `json:"every"` // one call in so many
	Batch   int          `json:"batch"`
	Batches int          `json:"batches"` // each direction, traced and not
	Rows    []TracingRow `json:"rows"`
	// NotMeasured is why the rows are not there, or not to be trusted.
	NotMeasured string `json:"not_measured,omitempty"`
}

// TracingRow is one direction.
type TracingRow struct {
	Direction  string  `json:"direction"`
	UntracedNS float64 `json:"untraced_ns"`
	TracedNS   float64 `json:"traced_ns"`
	// Ratio is traced : untraced of the same device, the mean of both devices.
	Ratio float64 `json:"ratio"`
}

// tracingSide is one of two devices that are alike.
type tracingSide struct {
	dev   *nfcomms.Device
	sink  *compare.Program
	flood *compare.Producer
	ns    [2][2][]float64 // a message, by direction, and whether the device was traced
}

func newTracingSide(ctx context.Context, dev *nfcomms.Device) (s *tracingSide, err error) {
	s = &tracingSide{dev: dev}
	if s.sink, err = compare.Start(ctx, dev, "sink", 1); err != nil {
		return nil, err
	}
	s.flood, err = compare.NewProducer(ctx, dev)
	return s, err
}

// warm makes a batch of each direction that does not count.
func (s *tracingSide) warm(ctx context.Context, traced int) error {
	for d := range compare.Directions {
		if err := s.batch(ctx, d, traced); err != nil {
			return err
		}
		s.ns[d][traced] = s.ns[d][traced][:len(s.ns[d][traced])-1]
	}
	return nil
}

// batch times messages of one direction; those from the device were asked for.
func (s *tracingSide) batch(ctx context.Context, d, traced int) error {
	buf := make([]byte, compare.MessageSize)
	took, err := compare.Timed(func() (err error) {
		for n := 0; n < tracingBatch && err == nil; n++ {
			if d == 0 {
				err = s.sink.Chans[0].Send(ctx, buf)
			} else {
				_, err = s.flood.Ch.Receive(ctx, buf)
			}
		}
		return err
	})
	s.ns[d][traced] = append(s.ns[d][traced], float64(took)/tracingBatch)
	return err
}

// tracingRound lets two devices take turns, batch by batch, after one that is forgotten.
func tracingRound(ctx context.Context, traced, untraced *tracingSide) error {
	t, err := trace.Start(ctx, traced.dev, trace.Options{Every: tracingEvery})
	if err != nil {
		return err
	}
	defer t.Close()
	sides := []*tracingSide{untraced, traced}
	for i, s := range sides {
		if err := s.flood.Messages(ctx, (tracingSlice+1)*tracingBatch, compare.MessageSize); err != nil {
			return err
		}
		if err := s.warm(ctx, i); err != nil {
			return err
		}
	}
	for n := range tracingSlice {
		for d := range compare.Directions {
			for i := range sides {
				i = (i + n) % 2 // neither is always the second
				if err := sides[i].batch(ctx, d, i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// measureTracing compares a device that is traced with another one of its address that is not. They
// change places, so that what else they differ by does not count.
func measureTracing(ctx context.Context, dev *nfcomms.Device, tests int) (r Tracing, err error) {
	r = Tracing{Every: tracingEvery, Batch: tracingBatch, Rows: []TracingRow{}}
	second, err := nfcomms.Open(ctx, dev.Info().Address)
	if err != nil {
		r.NotMeasured = fmt.Sprintf("no second device: %v", err)
		return r, ctx.Err()
	}
	defer func() { err = errors.Join(err, second.Close()) }()
	var sides [2]*tracingSide
	for i, d := range []*nfcomms.Device{dev, second} {
		if sides[i], err = newTracingSide(ctx, d); err != nil {
			return r, err
		}
	}
	w := cli.NewWatch(cli.CPUTime())
	for n := 0; n < tests*tracingRounds && (n%2 == 1 || time.Since(w.Start) < time.Duration(tests)*tracingTime); n++ {
		if err := tracingRound(ctx, sides[n%2], sides[1-n%2]); err != nil {
			return r, err
		}
		r.Batches += tracingSlice
	}
	r.NotMeasured = w.Busy(cli.CPUTime(), nil)
	for d, direction := range compare.Directions {
		r.Rows = append(r.Rows, tracingRow(direction, sides[0].ns[d], sides[1].ns[d]))
	}
	return r, nil
}

// tracingRow sums up a direction of two devices, each without and with a tracer.
func tracingRow(direction string, a, b [2][]float64) TracingRow {
	untraced, traced := [2]float64{stat.Median(a[0]), stat.Median(b[0])}, [2]float64{stat.Median(a[1]), stat.Median(b[1])}
	return TracingRow{
		Direction: direction, UntracedNS: (untraced[0] + untraced[1]) / 2, TracedNS: (traced[0] + traced[1]) / 2,
		Ratio: math.Sqrt(traced[0] / untraced[0] * traced[1] / untraced[1]),
	}
}

// goals decides T18 in both directions.
func (t Tracing) goals() (goals []cli.Goal) {
	for d, direction := range compare.Directions {
		g := cli.Goal{ID: "T18", What: fmt.Sprintf("%s 56 B, one call in %d traced : none, time", direction, t.Every), Target: tracingMost, AtMost: true}
		if len(t.Rows) > 0 {
			g.Value = t.Rows[d].Ratio
		}
		goals = append(goals, g.Decide(t.NotMeasured))
	}
	return goals
}

// lineOfTracing writes what tracing costs.
func (r *Report) lineOfTracing(w io.Writer) {
	t := r.Tracing
	what := cli.ResultNotMeasured + t.NotMeasured
	if t.NotMeasured == "" {
		var rows []string
		for _, row := range t.Rows {
			rows = append(rows, fmt.Sprintf("%s %s → %s (%+.1f %%)", row.Direction, units.Duration(row.UntracedNS), units.Duration(row.TracedNS), 100*(row.Ratio-1)))
		}
		what = strings.Join(rows, ", ")
	}
	fmt.Fprintf(w, "\nTracing one call in %d, messages of 56 bytes, two devices in turn, medians of %d batches of %d: %s\n", t.Every, t.Batches, t.Batch, what)
}
