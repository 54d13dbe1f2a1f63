//go:build linux

package main

import (
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"
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
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "seconds:\tboot\tall\tCPU machine\tCPU devices\t")
	sum := cost{job: "all jobs"}
	for _, r := range c.rows {
		r.write(t)
		sum.boot, sum.wall = sum.boot+r.boot, sum.wall+r.wall
		sum.machine, sum.devices = sum.machine+r.machine, sum.devices+r.devices
	}
	sum.write(t)
	t.Flush()
}

func (c cost) write(w io.Writer) {
	fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t\n", c.job, c.boot.Seconds(), c.wall.Seconds(), c.machine.Seconds(), c.devices.Seconds())
}
