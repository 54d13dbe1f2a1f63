package crowd

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// crowdSide is n callers that do one kind of call.
type crowdSide struct {
	call string
	size int
	// callers has the call of each.
	callers []func(context.Context) error
	close   func() error
	skipped string // why it cannot be measured

	samples *stat.Recorder
	rates   []float64 // operations a second, by round
	// reference has the rates of the Go channel pairs in the same rounds.
	reference []float64
	ops       []int // by caller, of all rounds
	cpu       time.Duration
	measured  int // operations, of all rounds
}

// measureCrowd measures every kind of call by n callers, each in turns with the Go
// channel pairs. A kind that the device has no room for is skipped.
func measureCrowd(ctx context.Context, dev *nfcomms.Device, o options, n, load int, bar cli.Progress) (rows []Row, err error) {
	calls := crowdCalls(o.bytes)
	pairs, err := calls[0].side(ctx, dev, o.shape, n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pairs.close()) }()
	for _, c := range calls {
		s := pairs
		if c.call != namePairs {
			if s, err = c.side(ctx, dev, o.shape, n); err != nil {
				return nil, err
			}
		}
		if err := s.beside(ctx, pairs, o, bar); err != nil {
			return nil, err
		}
		rows = append(rows, s.row(n, load))
	}
	return rows, nil
}

// beside measures a side, in turns with a reference that may be itself, and closes
// it if it is not.
func (s *crowdSide) beside(ctx context.Context, reference *crowdSide, o options, bar cli.Progress) error {
	for range o.rounds {
		bar.Step(s.call + " " + cli.SizeText(s.size))
		if s.skipped != "" {
			continue
		}
		if err := reference.round(ctx, o.slice); err != nil {
			return err
		}
		s.reference = append(s.reference, reference.rates[len(reference.rates)-1])
		if s == reference {
			continue
		}
		if err := s.round(ctx, o.slice); ctx.Err() != nil {
			return err
		} else if err != nil {
			s.skipped = err.Error()
		}
	}
	if s == reference || s.close == nil {
		return nil
	}
	return s.close()
}

// round lets all callers go for a slice of time, after one call of each.
func (s *crowdSide) round(ctx context.Context, slice time.Duration) error {
	var (
		wg     sync.WaitGroup
		warm   sync.WaitGroup
		over   atomic.Bool
		start  = make(chan struct{})
		errs   = make([]error, len(s.callers))
		counts = make([]int, len(s.callers))
		took   = make([]sampled, len(s.callers))
	)
	warm.Add(len(s.callers))
	for i, call := range s.callers {
		took[i].room = max(sampledMost/len(s.callers), 16)
		wg.Go(func() {
			errs[i] = call(ctx)
			warm.Done()
			<-start
			for errs[i] == nil && !over.Load() {
				if errs[i] = took[i].time(func() error { return call(ctx) }); errs[i] == nil {
					counts[i]++
				}
			}
		})
	}
	warm.Wait()
	cpu, begin := cli.CPUTime(), time.Now()
	close(start)
	timer := time.AfterFunc(slice, func() { over.Store(true) })
	wg.Wait()
	timer.Stop()
	s.count(counts, took, time.Since(begin), cli.CPUTime()-cpu)
	for _, err := range errs {
		if err != nil {
			return err // the others failed for the same reason
		}
	}
	return nil
}

// count adds a round to what was measured.
func (s *crowdSide) count(counts []int, took []sampled, wall, cpu time.Duration) {
	sum := 0
	for i, n := range counts {
		sum += n
		s.ops[i] += n
		for _, d := range took[i].all {
			s.samples.Record(d)
		}
	}
	s.rates = append(s.rates, float64(sum)/wall.Seconds())
	s.measured += sum
	s.cpu += cpu
}

// row concludes.
func (s *crowdSide) row(n, load int) Row {
	row := Row{Call: s.call, Size: s.size, Callers: n, Load: load, Skipped: s.skipped}
	if s.skipped != "" || s.measured == 0 {
		return row
	}
	at := func(q float64) float64 { return float64(s.samples.Histogram.ValueAtQuantile(q)) }
	mean := float64(s.measured) / float64(n)
	row.Rate, row.OfGoChannels = stat.SpreadOf(s.rates), stat.SpreadOf(stat.Pairwise(s.rates, s.reference))
	row.P50Ns, row.P99Ns, row.P999Ns = at(50), at(99), at(99.9)
	row.BestOverMean, row.WorstOverMean = float64(slices.Max(s.ops))/mean, float64(slices.Min(s.ops))/mean
	row.CPUNsPerOp = float64(s.cpu) / float64(s.measured)
	return row
}

// sampledMost is how many calls of a round are timed, of all callers.
const sampledMost = 1 << 18

// sampleEvery is how many calls stand for each that is timed at first: a clock
// costs a tenth of a message.
const sampleEvery = 8

// sampled times some of a caller's calls: one of every so many, twice as many
// when there is no room for more.
type sampled struct {
	room  int
	every int
	calls int
	all   []time.Duration
}

// time does a call, and times it if it is its turn.
func (t *sampled) time(call func() error) error {
	if t.every == 0 {
		t.every = sampleEvery
		t.all = make([]time.Duration, 0, t.room)
	}
	t.calls++
	if t.calls%t.every != 1 {
		return call()
	}
	d, err := compare.Timed(call)
	if len(t.all) == cap(t.all) {
		t.thin()
	}
	t.all = append(t.all, d)
	return err
}

// thin keeps every second sample.
func (t *sampled) thin() {
	for i := range len(t.all) / 2 {
		t.all[i] = t.all[2*i]
	}
	t.all = t.all[:len(t.all)/2]
	t.every *= 2
}
