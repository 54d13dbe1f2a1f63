//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/internal/texttable"
)

// workload is what a program does with a device of its own whose every access is trapped, so that
// those of one operation can be counted: those to the device's mailboxes, less what the first
// workload's saw, which does nothing. Registers are shown and not bounded: who reads them is the watch,
// by time, and a doorbell is written where an island has fallen asleep.
type workload struct {
	name          string  // of a case of mmio_test.c
	older         bool    // the device knows neither rings of the host, runs nor eager transfers
	operations    int     // that it makes
	reads, bursts float64 // of mailboxes, of one operation, at most
}

// workloads are those of the job mmio. A message is a burst and reads nothing. The limits of more
// than that are half as much again as was measured: how many runs the larger buffers are is the
// machine's memory's matter, and how often somebody looks at an older device's ring depends on time.
var workloads = []workload{
	{name: "nothing"},
	{name: "echo", operations: 400, bursts: 2.5},
	{name: "send_4k", operations: 400, bursts: 1.5},
	{name: "receive_4k", operations: 400, bursts: 3.5},
	{name: "send_64k", operations: 200, bursts: 6.5},
	{name: "send_8m", operations: 10, bursts: 120},
	{name: "echo", older: true, operations: 400, reads: 43, bursts: 10},
	{name: "send_4k", older: true, operations: 400, reads: 27, bursts: 10},
	{name: "receive_4k", older: true, operations: 400, reads: 71, bursts: 13},
	{name: "send_64k", older: true, operations: 200, reads: 60, bursts: 13},
	{name: "send_8m", older: true, operations: 10, reads: 240, bursts: 550},
}

// ways are the others: echoes by each way into the module, at limits that only a register or mailbox
// access of an operation more would pass. The program counts their system calls.
var ways = []workload{
	{name: "one_by_call", operations: 800, bursts: 1.3},
	{name: "one_by_submit", operations: 800, bursts: 1.3},
	{name: "many_by_submit", operations: 3200, bursts: 1.3},
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
			n.args = []string{"--host-rings=0", "--runs=0", "--eager=0"}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// programsOf returns a program for each workload, with its device: a case of a C program, whose
// rounds are of so many operations.
func programsOf(all []workload, p program, round func(workload) int) []string {
	var names []string
	for _, w := range all {
		name := p.binary + "-" + w.name
		p.args = []string{"-n", w.name, strconv.Itoa(w.operations / round(w))}
		programs[name] = p
		names = append(names, name+"@"+w.node())
	}
	return names
}

// one is for workloads whose rounds are one operation.
func one(workload) int { return 1 }

// channelsOf is for the ways: a message and its echo, on one channel or on 16.
func channelsOf(w workload) int {
	if strings.HasPrefix(w.name, "many") {
		return 2 * 16
	}
	return 2
}

func init() {
	all := slices.Concat(workloads, ways)
	jobs = append(jobs, job{
		name: "mmio", group: "test", about: "how many register accesses, each an exit of the machine here, an operation takes, and system calls by each way into the module",
		kernel: "release", device: append([]string{"--no-mmap"}, small...), params: loaded,
		counts: all, nodes: nodesOf(all),
		programs: append(programsOf(workloads, clientTest("mmio").built("mmio"), one), programsOf(ways, clientTest("ways").built("ways"), channelsOf)...),
	})
}

// accesses makes tests of how many accesses the devices saw, and prints how many.
func (v *reporter) accesses() {
	var idle busReport
	t := texttable.Numbers("of one", "mailbox reads", "writes", "in bursts", "register reads", "writes")
	for i, w := range v.boot.job.counts {
		r, err := v.devices[i].saw()
		if w.operations == 0 {
			idle = r
		}
		of := func(all, none uint64) float64 { return (float64(all) - float64(none)) / float64(max(w.operations, 1)) }
		m, none := r.Mailboxes, idle.Mailboxes
		reads, bursts := of(m.Reads, none.Reads), of(m.Bursts, none.Bursts)
		if w.operations > 0 {
			row := []string{w.node()}
			for _, n := range []float64{reads, of(m.Writes, none.Writes), bursts, of(r.Registers.Reads, idle.Registers.Reads), of(r.Registers.Writes, idle.Registers.Writes)} {
				row = append(row, fmt.Sprintf("%.1f", n))
			}
			t.Add(row...)
		}
		if reads > w.reads || bursts > w.bursts {
			err = cmp.Or(err, fmt.Errorf("%.2f reads and %.2f bursts of writes of one operation, at most %v and %v", reads, bursts, w.reads, w.bursts))
		}
		v.suite.test("accesses-"+w.node(), text(err))
	}
	t.Write(os.Stderr)
}
