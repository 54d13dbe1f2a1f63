package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// scrape holds the series of one device at one scrape.
type scrape struct {
	metrics []prometheus.Metric
	series  int
}

// add adds one series. labels begin with the device.
func (s *scrape) add(f *family, v float64, labels ...string) {
	s.metrics = append(s.metrics, prometheus.MustNewConstMetric(f.desc, f.kind, v, labels...))
	s.series++
}

// count is add for integers.
func (s *scrape) count(f *family, v uint64, labels ...string) { s.add(f, float64(v), labels...) }

// both is a histogram with classic and native buckets: a scraper takes what it
// knows. Each half is the library's own constant metric.
type both struct{ classic, native prometheus.Metric }

// Desc returns the description the halves share.
func (b *both) Desc() *prometheus.Desc { return b.native.Desc() }

// Write joins the halves.
func (b *both) Write(out *dto.Metric) error {
	var classic dto.Metric
	if err := b.classic.Write(&classic); err != nil {
		return err
	}
	if err := b.native.Write(out); err != nil {
		return err
	}
	out.Histogram.Bucket = classic.Histogram.Bucket
	out.Histogram.CreatedTimestamp = nil // nobody knows
	return nil
}

// durations adds a histogram of durations.
func (s *scrape) durations(f *family, p *nfcomms.PathProfile, bounds []int, labels ...string) {
	schema, buckets, n := native(p)
	classic := classic(p, bounds)
	total := p.Time.Seconds()
	s.metrics = append(s.metrics, &both{
		classic: prometheus.MustNewConstHistogram(f.desc, n, total, classic, labels...),
		native: prometheus.MustNewConstNativeHistogram(f.desc, n, total, buckets, nil, 0,
			schema, prometheus.DefNativeHistogramZeroThreshold, time.Time{}, labels...),
	})
	s.series += len(classic) + 3 // +Inf, sum, count
}

// Classic buckets end at whole octaves, given as binary logarithms of seconds, whose bounds are
// bounds of the native ones as well. Those of calls are 2^-20 s, about a microsecond, to a second,
// those of layers a quarter of that to a sixteenth of a second.
var callBuckets, layerBuckets = octaves(-20, 0, 1), octaves(-22, -4, 2)

func octaves(first, last, step int) (list []int) {
	for octave := first; octave <= last; octave += step {
		list = append(list, octave)
	}
	return list
}

// classic returns the cumulative counts of the classic buckets by upper bound.
func classic(p *nfcomms.PathProfile, bounds []int) map[float64]uint64 {
	buckets := make(map[float64]uint64, len(bounds))
	sum, next := uint64(0), 0
	for _, octave := range bounds {
		for ; next < 8*(octave-bridge.DurationFirst); next++ {
			sum += p.Durations[next]
		}
		buckets[math.Exp2(float64(octave))] = sum
	}
	return buckets
}

const (
	nativeSchema  = 3   // eighths of an octave: a factor of 1.09
	nativeBuckets = 160 // that a histogram may have
)

// native returns the buckets that are in use by their index in the schema, and
// how much they hold. If they are too many, neighbours are merged.
func native(p *nfcomms.PathProfile) (schema int32, buckets map[int]int64, n uint64) {
	schema, buckets = nativeSchema, make(map[int]int64)
	for i, c := range p.Durations {
		if c != 0 {
			buckets[i+1+8*bridge.DurationFirst] = int64(c)
			n += c
		}
	}
	for len(buckets) > nativeBuckets {
		merged := make(map[int]int64, len(buckets)/2+1)
		for i, c := range buckets {
			merged[(i+1)>>1] += c
		}
		schema, buckets = schema-1, merged
	}
	return schema, buckets, n
}

// Upper bounds of size histograms, as powers of two.
var (
	messageSizes  = []int{3, 4, 5, 6}
	transferSizes = []int{12, 16, 20, 24, 28, 32}
)

// sizes adds a histogram of sizes with the given upper bounds.
func (s *scrape) sizes(f *family, p *nfcomms.PathProfile, bounds []int, labels ...string) {
	buckets := make(map[float64]uint64, len(bounds))
	n, next := uint64(0), 0
	for i, c := range p.Sizes {
		n += c
		if next < len(bounds) && bounds[next] == i {
			buckets[math.Exp2(float64(i))] = n
			next++
		}
	}
	s.metrics = append(s.metrics, prometheus.MustNewConstHistogram(f.desc, n, float64(p.Bytes), buckets, labels...))
	s.series += len(buckets) + 3
}

// send hands the series over.
func (s *scrape) send(ch chan<- prometheus.Metric) {
	for _, m := range s.metrics {
		ch <- m
	}
}
