//go:build linux

package main

import "maps"

// slow are module parameters for a kernel that checks everything, on a machine
// that is not ours alone: what is late there is not lost.
const slow = "silence_ms=20000 watchdog_ms=0"

// debugPrograms are the guest's programs with the counts of a debug run.
var debugPrograms = map[string]program{
	"fuzz-some": clientTest("fuzz", "6000"),
}

// debugJobs run under the debug kernel: KASAN, lock and sleep checks, the DMA
// API's own, fault injection, and kmemleak where a job asks for it.
var debugJobs = []job{
	{
		name: "debug-ioctl", group: "debug", about: "every ioctl, memory and death of clients",
		kernel: "debug", device: []string{}, params: slow,
		programs: []string{"validate", "memory", "life"},
	},
	{
		name: "debug-cycle", group: "debug", about: "unbinding, removing, unloading, sleeping",
		kernel: "debug", device: []string{}, params: slow, kmemleak: true,
		programs: []string{"cycle", "fuzz-some"},
	},
	{
		name: "debug-failnth", group: "debug", about: "each allocation and copy of each ioctl fails once",
		kernel: "debug", device: []string{}, params: slow,
		programs: []string{"failnth"}, allow: []string{`page allocation failure`, `DMA-API: cacheline tracking ENOMEM`},
	},
}

func init() {
	maps.Copy(programs, debugPrograms)
	jobs = append(jobs, debugJobs...)
}
