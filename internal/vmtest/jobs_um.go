//go:build linux

package main

// umJobs run under User-Mode Linux with the same checks as the debug kernel: a
// process of this machine, which boots in a second. What is not there: a second
// processor, an IOMMU, and a bus that does anything at the same time as the
// processor (each access waits for its answer, each store too).
var umJobs = []job{
	{
		name: "debug-uml", group: "debug", about: "User-Mode Linux: every ioctl, memory, death of clients, random ioctls",
		programs: []string{"validate", "memory", "life-killed", "fuzz-more"},
	},
	{
		name: "debug-uml-failnth", group: "debug", about: "User-Mode Linux: each allocation and copy of each ioctl and of a probe fails once",
		programs: []string{"failnth", "probe"}, allow: injected,
	},
	{
		name: "campaign-fuzz-uml", group: "campaign", about: "random and structured ioctls under User-Mode Linux",
		programs: []string{"fuzz"}, count: 10_000_000, limit: campaignTime,
	},
}

// umFaults are messages of a kernel that has faults of its own: it walks a new
// process's memory without the lock that nobody else could take.
var umFaults = []string{`^WARNING: suspicious RCU usage`}

func init() {
	programs["fuzz-more"] = withArgs("fuzz", "20000")
	for _, j := range umJobs {
		j.kernel, j.device, j.params = "um", append([]string{"--managers=2", "--spin=0"}, small...), slow
		j.machine.Append = []string{"kmemleak=off"} // a stack trace for every allocation
		j.allow = append(umFaults, j.allow...)
		jobs = append(jobs, j)
	}
}
