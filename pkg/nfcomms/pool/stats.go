package pool

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats is what a pool did, and what it does now.
type Stats struct {
	// Processes is the number that the pool should have, Running how many run, Busy how many of
	// these do an exchange. Waiting is the number of callers in the queue.
	Processes, Running, Busy, Waiting int
	// Exchanges succeeded. Failed ended with an error; Refused are those of them that found the queue full.
	Exchanges, Failed, Refused uint64
	// Retries counts exchanges that were tried again, Replaced processes that were started anew.
	Retries, Replaced uint64
	// Time is that of exchanges that succeeded, Waited that of callers until they had a process.
	Time, Waited time.Duration
	// TimeCounts and WaitedCounts count by time: element i counts what took less than 2^i ns and no
	// less than half of that.
	TimeCounts, WaitedCounts [64]uint64
}

// counts are the counters of a pool.
type counts struct {
	running                            atomic.Int64
	failed, refused, retries, replaced atomic.Uint64
	exchangeTime, waitTime             durations
}

// durations adds times up, and counts them by powers of two.
type durations struct {
	sum   atomic.Int64
	count [64]atomic.Uint64
}

func (t *durations) add(d time.Duration) {
	t.sum.Add(int64(d))
	t.count[bits.Len64(uint64(max(d, 0)))].Add(1)
}

// read returns the sum, and how many there are in each class and in all.
func (t *durations) read() (sum time.Duration, counts [64]uint64, all uint64) {
	for i := range t.count {
		counts[i] = t.count[i].Load()
		all += counts[i]
	}
	return time.Duration(t.sum.Load()), counts, all
}

// Stats returns the counters. It slows no exchange down.
func (p *Pool) Stats() Stats {
	s := Stats{
		Processes: int(p.size.Load()), Running: int(p.running.Load()),
		Failed: p.failed.Load(), Refused: p.refused.Load(), Retries: p.retries.Load(), Replaced: p.replaced.Load(),
	}
	s.Waiting, s.Busy = p.queue.now()
	s.Time, s.TimeCounts, s.Exchanges = p.exchangeTime.read()
	s.Waited, s.WaitedCounts, _ = p.waitTime.read()
	return s
}
