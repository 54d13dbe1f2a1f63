package main

import (
	"context"
	"errors"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Idle is what an open device costs while nobody uses it.
type Idle struct {
	// Seconds is the length of the measurement.
	Seconds float64 `json:"seconds"`
	// CPUPercent is of one core, for the whole process.
	CPUPercent float64 `json:"cpu_percent"`
}

// measureIdle leaves the device alone for a while.
func measureIdle(ctx context.Context, d time.Duration) (Idle, error) {
	before, start := cpuTime(), time.Now()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return Idle{}, ctx.Err()
	}
	used, wall := cpuTime()-before, time.Since(start)
	return Idle{Seconds: wall.Seconds(), CPUPercent: 100 * float64(used) / float64(wall)}, nil
}

// Blocked is what sends cost that wait for a target.
type Blocked struct {
	Sends int `json:"sends"`
	// ThreadsBefore and ThreadsDuring count OS threads; -1 if unknown.
	ThreadsBefore int `json:"threads_before"`
	ThreadsDuring int `json:"threads_during"`
}

// measureBlocked has n sends wait for targets that never read, each on a
// channel of its own, and counts threads meanwhile.
func measureBlocked(ctx context.Context, dev *nfcomms.Device, n int) (b Blocked, err error) {
	p, err := start(ctx, dev, "hold", n)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, p.stop(ctx)) }()
	b = Blocked{Sends: n, ThreadsBefore: threads()}
	withdraw, err := blockSends(ctx, dev, p)
	if err != nil {
		return b, err
	}
	b.ThreadsDuring = threads()
	return b, withdraw()
}
