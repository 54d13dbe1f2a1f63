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
	withdraw, err := blockSends(ctx, dev, p)
	if err != nil {
		return b, err
	}
	b.ThreadsDuring = threads()
	return b, withdraw()
}

// blockSends has a send wait on each channel of a program that never reads. withdraw
// takes them back.
func blockSends(ctx context.Context, dev *nfcomms.Device, p *program) (withdraw func() error, err error) {
	sending, cancel := context.WithCancel(ctx)
	ended := make(chan error, len(p.chans)) // room for all, so that none waits to report
	var wg sync.WaitGroup
	for _, ch := range p.chans {
		wg.Go(func() { ended <- ch.Send(sending, []byte("wait")) })
	}
	withdraw = func() error {
		cancel()
		wg.Wait()
		close(ended)
		for e := range ended {
			if !errors.Is(e, nfcomms.ErrWithdrawn) {
				return fmt.Errorf("a send that should wait ended: %w", e)
			}
		}
		return nil
	}
	if err := untilBlocked(ctx, dev, len(p.chans), ended); err != nil {
		return nil, errors.Join(err, withdraw())
	}
	return withdraw, nil
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
