//go:build linux

package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/internal/texttable"
)

// cost is what one boot of one machine took. Beside other work the processor time is the figure
// to compare.
type cost struct {
	job     string
	wall    time.Duration
	boot    time.Duration // of wall, until the guest's first frame
	machine time.Duration // processor time of the machine
	devices time.Duration // and of its devices
}

// costs are those of all jobs of a run, in the order of their end.
type costs struct {
	mu   sync.Mutex
	rows []cost
}

// add is safe for concurrent use.
func (c *costs) add(row cost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, row)
}

// print writes the table, and nothing if no machine ran.
func (c *costs) print(w io.Writer) {
	if len(c.rows) == 0 {
		return
	}
	t := texttable.Numbers("seconds", "boot", "all", "CPU machine", "CPU devices")
	sum := cost{job: "all jobs"}
	for _, r := range c.rows {
		t.Add(r.cells()...)
		sum.boot, sum.wall = sum.boot+r.boot, sum.wall+r.wall
		sum.machine, sum.devices = sum.machine+r.machine, sum.devices+r.devices
	}
	t.Add(sum.cells()...)
	t.Write(w)
}

// cells are the row of the table.
func (c cost) cells() []string {
	row := []string{c.job}
	for _, d := range []time.Duration{c.boot, c.wall, c.machine, c.devices} {
		row = append(row, fmt.Sprintf("%.1f", d.Seconds()))
	}
	return row
}
