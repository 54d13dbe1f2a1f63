//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"

	"github.com/nfcomms/nfcomms/internal/texttable"
)

// workload is what a program does with a device of its own whose every register access is trapped,
// so that the accesses of one operation can be counted: those of the device, less what the first
// workload's saw, which does nothing.
type workload struct {
	name          string  // of a case of mmio_test.c
	older         bool    // the device knows neither runs nor eager transfers
	operations    int     // that it makes
	reads, writes float64 // of one, at most
}

// workloads are those of the job mmio. The limits are half as much again as was measured: how often
// somebody looks at a ring that nothing came from depends on time, and how many runs the larger
// buffers are on the machine's memory.
var workloads = []workload{
	{name: "nothing"},
	{name: "echo", operations: 400, reads: 43, writes: 33},
	{name: "send_4k", operations: 400, reads: 26, writes: 17},
	{name: "receive_4k", operations: 400, reads: 68, writes: 36},
	{name: "send_64k", operations: 200, reads: 40, writes: 55},
	{name: "send_8m", operations: 10, reads: 80, writes: 600},
	{name: "send_4k", older: true, operations: 400, reads: 27, writes: 42},
	{name: "receive_4k", older: true, operations: 400, reads: 71, writes: 51},
	{name: "send_64k", older: true, operations: 200, reads: 53, writes: 72},
	{name: "send_8m", older: true, operations: 10, reads: 80, writes: 4200},
}

// node returns the name of the workload's device, and its program's.
func (w workload) node() string {
	if w.older {
		return w.name + "-older"
	}
	return w.name
}

// nodesOf returns a device for each workload.
func nodesOf(all []workload) []node {
	var nodes []node
	for _, w := range all {
		n := node{name: w.node()}
		if w.older {
			n.args = []string{"--runs=0", "--eager=0"}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// programsOf returns a program for each workload, with its device.
func programsOf(all []workload) []string {
	var names []string
	for _, w := range all {
		programs["mmio-"+w.name] = withArgs("mmio", "-n", w.name, strconv.Itoa(w.operations))
		names = append(names, "mmio-"+w.name+"@"+w.node())
	}
	return names
}

func init() {
	jobs = append(jobs, job{
		name: "mmio", group: "test", about: "how many register accesses an operation takes, each of which is an exit of the machine here",
		kernel: "release", device: append([]string{"--no-mmap"}, small...), params: loaded,
		counts: workloads, nodes: nodesOf(workloads), programs: programsOf(workloads),
	})
}

// accesses makes tests of how many register accesses the devices saw, and prints how many.
func (v *reporter) accesses() {
	var idle busReport
	t := texttable.Numbers("of one", "reads", "writes", "exits")
	for i, w := range v.boot.job.counts {
		r, err := v.devices[i].saw()
		if w.operations == 0 {
			idle = r
		}
		n := float64(max(w.operations, 1))
		reads, writes := float64(r.Reads-idle.Reads)/n, float64(r.Writes-idle.Writes)/n
		if w.operations > 0 {
			t.Add(w.node(), fmt.Sprintf("%.1f", reads), fmt.Sprintf("%.1f", writes), fmt.Sprintf("%.1f", reads+writes))
		}
		if reads > w.reads || writes > w.writes {
			err = cmp.Or(err, fmt.Errorf("%.1f reads and %.1f writes of one operation, at most %v and %v", reads, writes, w.reads, w.writes))
		}
		v.suite.test("accesses-"+w.node(), text(err))
	}
	t.Write(os.Stderr)
}
