package metrics

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// descs are the metrics of one kind of thing. Their first label has the thing's name.
type descs struct {
	prefix, label string
	all           []*prometheus.Desc
}

// desc declares a metric. labels follow the name.
func (d *descs) desc(name, help string, labels ...string) *prometheus.Desc {
	desc := prometheus.NewDesc(d.prefix+name, help, append([]string{d.label}, labels...), nil)
	d.all = append(d.all, desc)
	return desc
}

// Describe sends what Collect may send.
func (d *descs) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range d.all {
		ch <- desc
	}
}

// listed is a collector of what each lists at a scrape.
type listed[T any] struct {
	*descs
	each func() iter.Seq2[string, T]
	read func(T, named)
}

// Collect reads everything that is listed.
func (l listed[T]) Collect(ch chan<- prometheus.Metric) {
	for name, of := range l.each() {
		l.read(of, named{ch, name})
	}
}

// named sends metrics of the thing of that name.
type named struct {
	ch   chan<- prometheus.Metric
	name string
}

func (n named) send(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	n.ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{n.name}, labels...)...)
}

// Buckets end at powers of two, from a microsecond to half a minute.
const powersFirst, powersLast = 10, 35

// times sends a histogram whose element i counts what took less than 2^i ns.
func (n named) times(d *prometheus.Desc, of *[64]uint64, sum time.Duration) {
	buckets := make(map[float64]uint64)
	var count uint64
	for i, m := range of {
		count += m
		if i >= powersFirst && i <= powersLast {
			buckets[float64(uint64(1)<<i)/1e9] = count
		}
	}
	n.ch <- prometheus.MustNewConstHistogram(d, count, sum.Seconds(), buckets, n.name)
}
