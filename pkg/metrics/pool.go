package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/pkg/nfcomms/pool"
)

// Metrics of pools; all have the label "pool".
var (
	poolDescs = &descs{prefix: "nfcomms_pool_", label: "pool"}

	poolProcesses = poolDescs.desc("processes", "Processes of the pool that run, and those that it should have.", "state")
	poolBusy      = poolDescs.desc("busy_processes", "Processes that do an exchange.")
	poolWaiting   = poolDescs.desc("waiting_callers", "Callers that wait for a process.")
	poolExchanges = poolDescs.desc("exchanges_total", "Exchanges, by their result.", "result")
	poolRefused   = poolDescs.desc("refused_total", "Callers that found the queue full.")
	poolRetries   = poolDescs.desc("retries_total", "Times that an exchange was tried on another process.")
	poolReplaced  = poolDescs.desc("processes_replaced_total", "Processes that were started in place of one that was not whole.")
	poolTime      = poolDescs.desc("exchange_duration_seconds", "Time of exchanges that succeeded, without waiting.")
	poolWait      = poolDescs.desc("wait_duration_seconds", "Time until a caller had a process.")
)

// NewPoolCollector returns a collector of the pools that the function lists at each scrape, each by a
// name of its own. A pool takes 67 series. pools is called by the goroutine that gathers, by several
// at once if several gather.
func NewPoolCollector(pools func() iter.Seq2[string, *pool.Pool]) prometheus.Collector {
	return listed[*pool.Pool]{poolDescs, pools, readPool}
}

func readPool(p *pool.Pool, n named) {
	s := p.Stats()
	n.send(poolProcesses, gauge, float64(s.Running), "running")
	n.send(poolProcesses, gauge, float64(s.Processes), "wanted")
	n.send(poolBusy, gauge, float64(s.Busy))
	n.send(poolWaiting, gauge, float64(s.Waiting))
	n.send(poolExchanges, counter, float64(s.Exchanges), "ok")
	n.send(poolExchanges, counter, float64(s.Failed), "failed")
	n.send(poolRefused, counter, float64(s.Refused))
	n.send(poolRetries, counter, float64(s.Retries))
	n.send(poolReplaced, counter, float64(s.Replaced))
	n.times(poolTime, &s.TimeCounts, s.Time)
	n.times(poolWait, &s.WaitedCounts, s.Waited)
}
