package stat

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/nfcomms/nfcomms/bench/internal/papers"
)

// Stat summarises samples; the field that holds it names the unit.
type Stat struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Summarise computes a Stat of few samples. Percentiles are nearest-rank.
func Summarise(samples []float64) Stat {
	if len(samples) == 0 {
		return Stat{}
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	var m moments
	for _, x := range s {
		m.add(x)
	}
	return Stat{
		N: len(s), Mean: m.mean, SD: m.sd(), Min: s[0], Max: s[len(s)-1],
		P50: rank(s, 0.50), P99: rank(s, 0.99),
	}
}

func rank(sorted []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(i, 0)]
}

// moments accumulates mean and variance in one pass (Welford).
type moments struct {
	n        int
	mean, m2 float64
}

func (m *moments) add(x float64) {
	m.n++
	d := x - m.mean
	m.mean += d / float64(m.n)
	m.m2 += d * (x - m.mean)
}

// sd is the sample standard deviation.
func (m *moments) sd() float64 {
	if m.n < 2 {
		return 0
	}
	return math.Sqrt(m.m2 / float64(m.n-1))
}

// Recorder collects many durations: exact mean and deviation, percentiles to
// three digits.
type Recorder struct {
	moments
	Histogram *hdrhistogram.Histogram
}

// recordCeiling is the longest duration the percentiles tell apart.
const recordCeiling = 5 * time.Minute

// NewRecorder is one without samples.
func NewRecorder() *Recorder {
	return &Recorder{Histogram: hdrhistogram.New(1, int64(recordCeiling), 3)}
}

// Record adds a sample.
func (r *Recorder) Record(d time.Duration) {
	r.add(float64(d))
	// Clamped to the range, so it cannot be refused.
	_ = r.Histogram.RecordValue(int64(min(max(d, 1), recordCeiling)))
}

// Stat returns nanoseconds per operation when each sample covers ops of them.
func (r *Recorder) Stat(ops int) Stat {
	if r.n == 0 {
		return Stat{}
	}
	per := 1 / float64(ops)
	at := func(q float64) float64 { return float64(r.Histogram.ValueAtQuantile(q)) * per }
	return Stat{
		N: r.n, Mean: r.mean * per, SD: r.sd() * per, Min: float64(r.Histogram.Min()) * per,
		P50: at(50), P99: at(99), Max: float64(r.Histogram.Max()) * per,
	}
}

// Percentile is the value that so many percent of the samples do not exceed.
type Percentile struct {
	Percent float64 `json:"percent"`
	Value   float64 `json:"value"`
}

// Percentiles returns nanoseconds per operation when each sample covers ops of
// them, as far into the tail as there are samples.
func (r *Recorder) Percentiles(ops int) (all []Percentile) {
	for _, q := range []float64{0, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 99.999} {
		if q > 50 && float64(r.n)*(100-q) < 99 {
			break
		}
		all = append(all, Percentile{q, float64(r.Histogram.ValueAtQuantile(q)) / float64(ops)})
	}
	return all
}

// Spread is the median of the rounds with the extremes.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf computes a Spread.
func SpreadOf(samples []float64) Spread {
	s := Summarise(samples)
	return Spread{Median: Median(samples), Min: s.Min, Max: s.Max}
}

// Median is the middle of samples, 0 of none.
func Median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}

// Pairwise divides round by round: both sides saw the same machine.
func Pairwise(a, b []float64) []float64 {
	r := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			r = append(r, a[i]/b[i])
		}
	}
	return r
}

// Hockney is the straight line t(n) = t0 + n/r∞ through measured times.
type Hockney struct {
	// T0 is the start-up time in nanoseconds.
	T0 float64 `json:"t0_ns"`
	// RInf is the rate of an endless message in GB/s (bytes per nanosecond).
	RInf float64 `json:"rinf_gb_s"`
	// NHalf is the size in bytes that reaches half of RInf.
	NHalf float64 `json:"nhalf_bytes"`
	// N95 is the size in bytes from which start-up costs less than 5 %.
	N95 float64 `json:"n95_bytes"`
}

// FitHockney fits sizes in bytes and times in nanoseconds; nil if there is no
// such line.
func FitHockney(size, ns []float64) *Hockney {
	samples := make([]papers.Sample, len(size))
	for i, n := range size {
		samples[i] = papers.Sample{Bytes: n, Seconds: ns[i] / 1e9}
	}
	line, err := papers.FitHockney(samples)
	if err != nil {
		return nil
	}
	return &Hockney{T0: line.T0 * 1e9, RInf: line.Rate / 1e9, NHalf: line.Half(), N95: 19 * line.Half()}
}

// Rate is the model's throughput in GB/s at a size in bytes.
func (h *Hockney) Rate(size float64) float64 {
	return size / (h.T0 + size/h.RInf)
}

// Scaled is s in another unit.
func (s Stat) Scaled(by float64) Stat {
	for _, v := range []*float64{&s.Mean, &s.SD, &s.Min, &s.P50, &s.P99, &s.Max} {
		*v *= by
	}
	return s
}

// Times writes a ratio.
func Times(s Spread) string { return fmt.Sprintf("%.2f (%.2f..%.2f)", s.Median, s.Min, s.Max) }
