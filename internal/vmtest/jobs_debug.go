//go:build linux

package main

import (
	"maps"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// slow are module parameters for a kernel that checks everything, on a machine
// that is not ours alone: what is late there is not lost.
const slow = "heartbeat_timeout_ms=20000 watchdog_timeout_ms=0"

// hasty are those for devices that are lost on purpose.
const hasty = "heartbeat_timeout_ms=2000"

// small is a device that many of fit into one machine.
var small = []string{"--bar2=8MiB", "--channels=1024"}

// injected are messages of a kernel whose allocations are made to fail. Its own
// files below /proc/irq and its trace events warn of that.
var injected = []string{`page allocation failure`, `DMA-API: cacheline tracking ENOMEM`, `^WARNING: .* at (fs/proc|kernel/trace)/`}

// freed is a message of the bus of 6.1, which frees a device, with its lock, that was removed while
// the bus held that lock to reset the device's link.
var freed = []string{`^WARNING: held lock freed!`}

// debugPrograms are the guest's programs with the counts of a debug run.
var debugPrograms = map[string]program{
	"fuzz-some":    withArgs("fuzz", "6000"),
	"hostile-some": withArgs("hostile", "6"),
	"cycle-some":   withArgs("cycle", "1"),
	"signal-some":  withArgs("signal", "1000"),
	"exits-killed": withArgs("exits", "-n", "killed", "9"),
	"pairs-one":    withArgs("pairs", "-n", "_and_", "1"),
	"pairs-aer":    withArgs("pairs", "-n", "aer_meets", "1"),
	"exits-some":   withArgs("exits", "-n", "killed_many_times", "9"),
	"clients-some": withArgs("clients", "-n", "_that_"), // the others place probes in the kernel
}

// withArgs is a C program with arguments.
func withArgs(binary string, args ...string) program {
	return clientTest(binary, args...).built(binary)
}

// liars break the protocol, or reach for memory that is not theirs.
var liars = lies(
	"count@2+3", "early@2+3", "id@2+5", "epoch@2+5", "type@2+5", "channel@2+5", "length@2+5", "phase@2+7", "state@2+5",
	"direction@2+5", "reserved@2+5", "replay@2+3", "again@2+3", "drop@5+11", "garbage@2+5", "random@2+7", "flip@3+40",
	"overreach@2+3", "wild@2+3", "scribble@2+3", "late@2+3",
	"ahead@9+7", "behind@2+3", "rewrite@2+5",
)

// failing are devices that lie without an IOMMU, lose interrupts, hang, vanish and die, some with
// their rings in the BAR.
var failing = append(with(lies(
	"id@2+5", "type@2+5", "replay@2+3", "flip@3+40", "behind@2+3", "rewrite@2+5",
), "--host-rings=0"), lies(
	"irq-drop@2+3", "irq-dup@1+2", "irq-storm@5+60",
	"mute@9+30", "hang@12+30", "stuck@3", "gone@20", "fake-removal@20", "die@20",
)...)

// debugJobs run under the debug kernel: KASAN, lock and sleep checks, the DMA
// API's own, fault injection, and kmemleak where a job asks for it.
var debugJobs = []job{
	{
		name: "debug-ioctl", group: "debug", about: "every ioctl, memory, signals, death of clients, what is shown",
		kernel: "debug", device: []string{}, params: slow,
		programs: []string{"validate", "memory", "runs", "eager", "signal-some", "exits", "show", "wake", "busy", "eventfd"},
	},
	{
		name: "debug-iommu", group: "debug", about: "an IOMMU, and one interrupt for everything",
		kernel: "debug", machine: vm.Machine{IOMMU: true}, device: []string{"--vectors=1"}, params: slow,
		programs: []string{"memory", "exits-some"},
	},
	{
		name: "debug-region", group: "debug", about: "registered memory and dma-bufs, behind an IOMMU",
		kernel: "debug", machine: vm.Machine{IOMMU: true}, device: []string{}, params: slow,
		programs: []string{"region", "lines", "revoke", "dmabuf", "far"},
	},
	{
		name: "swiotlb", group: "debug", about: "every mapping is a copy in low memory, a quarter MiB at most",
		kernel: "release", machine: vm.Machine{Memory: 1024, Append: []string{"swiotlb=force"}}, device: []string{}, params: loaded,
		programs: []string{"memory", "eager", "region", "bulk"},
	},
	{
		name: "lazy", group: "debug", about: "an IOMMU that forgets mappings late",
		kernel: "release", machine: vm.Machine{IOMMU: true, Append: []string{"iommu.strict=0"}}, device: []string{}, params: loaded,
		programs: []string{"memory", "runs", "eager", "region", "exits-killed", "cycle-some", "bulk"},
	},
	{
		name: "vfio-all", group: "debug", about: "a function that a process drives by VFIO, with every rule of the contract",
		kernel: "release", machine: vm.Machine{IOMMU: true, Memory: 1024}, device: []string{}, vfio: true,
		nodes: with([]node{{name: "first"}, {name: "second"}}, rareHeartbeats), programs: []string{"vfio-all"},
	},
	{
		name: "debug-cycle", group: "debug", about: "unbinding, removing, unloading, sleeping; then leaks",
		kernel: "debug", device: []string{}, params: slow, kmemleak: true,
		programs: []string{"cycle-some", "chaos", "pairs-one"},
	},
	{
		name: "debug-fuzz", group: "debug", about: "random ioctls, some of which name the same memory; then leaks",
		kernel: "debug", device: []string{}, params: slow, kmemleak: true,
		programs: []string{"fuzz-some"},
	},
	{
		name: "debug-errors", group: "debug", about: "errors of the bus, reported by the port above the device",
		kernel: "debug", machine: vm.Machine{Ports: true}, device: []string{}, params: slow,
		programs: []string{"errors", "pairs-aer"}, allow: freed,
	},
	{
		name: "debug-error-beside", group: "debug", about: "an error of the bus from which a function beside the device does not recover",
		kernel: "debug", machine: vm.Machine{Ports: true, Beside: true}, device: []string{}, params: slow,
		programs: []string{"beside"}, allow: freed,
	},
	{
		name: "debug-stall", group: "debug", about: "memory whose pages come late: nobody else waits",
		kernel: "debug", device: []string{}, params: slow,
		programs: []string{"stall", "clients-some", "opcodes"},
	},
	{
		name: "debug-failnth", group: "debug", about: "each allocation and copy of each ioctl and of a probe fails once",
		kernel: "debug", machine: vm.Machine{IOMMU: true}, device: []string{}, params: slow,
		programs: []string{"failnth", "probe"}, allow: injected,
	},
	{
		name: "debug-hostile", group: "debug", about: "devices that lie, behind an IOMMU",
		kernel: "debug", machine: vm.Machine{IOMMU: true, Memory: 1024}, device: small, params: hasty,
		nodes: liars, programs: on("hostile-some", liars),
	},
	{
		name: "debug-lost", group: "debug", about: "devices that lose interrupts, hang, vanish and die, with one interrupt and no IOMMU",
		kernel: "debug", machine: vm.Machine{Memory: 1024}, device: append([]string{"--vectors=1"}, small...), params: hasty,
		nodes: append(lies(hangs), failing...), programs: append([]string{"recover@" + hangs}, on("hostile-some", failing)...),
	},
	{
		name: "races", group: "races", about: "accesses of two processors to the same memory without an order, by KCSAN",
		kernel: "kcsan", machine: vm.Machine{Memory: 1024}, device: []string{}, params: slow,
		programs: []string{"signal-some", "exits-killed", "busy", "clients-some", "region-some", "fuzz-some", "cycle-some", "pairs-one", "chaos"},
	},
}

func init() {
	maps.Copy(programs, debugPrograms)
	jobs = append(jobs, debugJobs...)
}
