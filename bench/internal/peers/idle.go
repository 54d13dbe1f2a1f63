package peers

import (
	"context"
	"errors"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
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
	before, start := cli.CPUTime(), time.Now()
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return Idle{}, ctx.Err()
	}
	used, wall := cli.CPUTime()-before, time.Since(start)
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
	p, err := compare.Start(ctx, dev, "hold", n)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, p.Stop(ctx)) }()
	b = Blocked{Sends: n, ThreadsBefore: cli.Threads()}
	withdraw, err := compare.BlockSends(ctx, dev, p)
	if err != nil {
		return b, err
	}
	b.ThreadsDuring = cli.Threads()
	return b, withdraw()
}
