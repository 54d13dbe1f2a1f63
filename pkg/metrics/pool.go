package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/pkg/nfcomms/pool"
)

// Metrics of pools; all have the label "pool".
var (
	poolProcesses = poolDesc("processes", "Processes of the pool that run, and those that it should have.", "state")
	poolBusy      = poolDesc("busy_processes", "Processes that do an exchange.")
	poolWaiting   = poolDesc("waiting_callers", "Callers that wait for a process.")
	poolExchanges = poolDesc("exchanges_total", "Exchanges, by their result.", "result")
	poolRefused   = poolDesc("refused_total", "Callers that found the queue full.")
	poolRetries   = poolDesc("retries_total", "Times that an exchange was tried on another process.")
	poolReplaced  = poolDesc("processes_replaced_total", "Processes that were started in place of one that was not whole.")
	poolTime      = poolDesc("exchange_duration_seconds", "Time of exchanges that succeeded, without waiting.")
	poolWait      = poolDesc("wait_duration_seconds", "Time until a caller had a process.")
	poolDescs     = []*prometheus.Desc{
		poolProcesses, poolBusy, poolWaiting, poolExchanges, poolRefused, poolRetries, poolReplaced, poolTime, poolWait,
	}
)

func poolDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("nfcomms_pool_"+name, help, append([]string{"pool"}, labels...), nil)
}

// NewPoolCollector returns a collector of the pools that the function lists at each scrape, each by a
// name of its own. A pool takes 67 series. pools is called by the goroutine that gathers, by several
// at once if several gather.
func NewPoolCollector(pools func() iter.Seq2[string, *pool.Pool]) prometheus.Collector {
	return poolCollector(pools)
}

type poolCollector func() iter.Seq2[string, *pool.Pool]

// Describe sends what Collect may send.
func (c poolCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range poolDescs {
		ch <- d
	}
}

// Collect reads every pool.
func (c poolCollector) Collect(ch chan<- prometheus.Metric) {
	for name, p := range c() {
		s := p.Stats()
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{name}, labels...)...)
		}
		send(poolProcesses, gauge, float64(s.Running), "running")
		send(poolProcesses, gauge, float64(s.Processes), "wanted")
		send(poolBusy, gauge, float64(s.Busy))
		send(poolWaiting, gauge, float64(s.Waiting))
		send(poolExchanges, counter, float64(s.Exchanges), "ok")
		send(poolExchanges, counter, float64(s.Failed), "failed")
		send(poolRefused, counter, float64(s.Refused))
		send(poolRetries, counter, float64(s.Retries))
		send(poolReplaced, counter, float64(s.Replaced))
		ch <- powersHistogram(poolTime, &s.TimeCounts, s.Time, name)
		ch <- powersHistogram(poolWait, &s.WaitedCounts, s.Waited, name)
	}
}
