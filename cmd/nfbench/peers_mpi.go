//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// newMPIEcho echoes messages between two ranks, or says why not. Ranks that wait keep
// their processors, so each slice has a run of its own, whose start is not timed.
func newMPIEcho(ctx context.Context) (c *contender, missing string) {
	m := findMPI(ctx, "echo")
	if m.missing != "" {
		m.remove()
		return nil, strings.TrimPrefix(m.missing, resultNotMeasured)
	}
	var spent time.Duration
	c = &contender{
		name: nameMPI, size: messageSize, batch: smallBatch, batches: 1000,
		run: func(ctx context.Context, n int) (time.Duration, error) {
			text, err := m.run(ctx, 2, messageSize, n/smallBatch, smallBatch)
			if err != nil {
				return 0, err
			}
			lines := strings.Fields(text)
			if len(lines) != n/smallBatch+1 {
				return 0, fmt.Errorf("OpenMPI printed %d lines in place of %d", len(lines), n/smallBatch+1)
			}
			c.parts = make([]time.Duration, len(lines))
			var sum time.Duration
			for i, line := range lines {
				ns, err := strconv.ParseInt(line, 10, 64)
				if err != nil {
					return 0, fmt.Errorf("OpenMPI printed %q", line)
				}
				c.parts[i] = time.Duration(ns)
				sum += c.parts[i]
			}
			cpu := c.parts[len(lines)-1] // the last line
			c.parts = c.parts[:len(lines)-1]
			spent += cpu
			return sum - cpu, nil
		},
		cpu: func() (time.Duration, error) { return spent, nil },
		close: func() error {
			m.remove()
			return nil
		},
	}
	return c, ""
}
