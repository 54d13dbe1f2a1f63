package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	sending, withdraw := context.WithCancel(ctx)
	ended := make(chan error, n) // room for all, so that none waits to report
	var wg sync.WaitGroup
	for _, ch := range p.chans {
		wg.Go(func() { ended <- ch.Send(sending, []byte("wait")) })
	}
	err = untilBlocked(ctx, dev, n, ended)
	b.ThreadsDuring = threads()
	withdraw()
	wg.Wait()
	close(ended)
	for e := range ended {
		if err == nil && !errors.Is(e, nfcomms.ErrWithdrawn) {
			err = fmt.Errorf("a send that should wait ended: %w", e)
		}
	}
	return b, err
}

// untilBlocked waits until n calls sleep.
func untilBlocked(ctx context.Context, dev *nfcomms.Device, n int, ended <-chan error) error {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for dev.Stats().Blocked < n {
		select {
		case err := <-ended:
			return fmt.Errorf("a send that should wait ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}
