//go:build linux

package main

import (
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// campaignTime bounds a campaign.
const campaignTime = 24 * time.Hour

// worst are combinations that strike often.
var worst = lies("random+2", "random@3+7", "garbage+2", "replay+2,again+3", "flip@2+9", "irq-drop+2,irq-dup+3,irq-storm+999", "rewrite+3,behind+2", "ahead@9+7")

// campaigns are long runs, started one by one with a -count of their own if that
// of docs/testing.md is too much for the day.
var campaigns = []job{
	{
		name: "fuzz", about: "random and structured ioctls", kernel: "release", params: loaded,
		programs: []string{"fuzz"}, count: 5_000_000,
	},
	{
		name: "fuzz-debug", about: "the same under the debug kernel", kernel: "debug", params: slow,
		programs: []string{"fuzz"}, count: 1_000_000,
	},
	{
		name: "failnth", about: "each allocation and copy of each ioctl fails, in rounds", kernel: "debug", params: slow, allow: injected,
		programs: []string{"failnth"}, count: 24,
	},
	{
		name: "failnth-iommu", about: "the same with an IOMMU", kernel: "debug", params: slow, allow: injected,
		machine: vm.Machine{IOMMU: true}, programs: []string{"failnth"}, count: 24,
	},
	{
		name: "kill", about: "kill -9 of clients with DMA in flight", kernel: "release", params: loaded,
		programs: []string{"exits-kills"}, count: 10_000,
	},
	{
		name: "kill-debug", about: "the same under the debug kernel with an IOMMU", kernel: "debug", params: slow,
		machine: vm.Machine{IOMMU: true}, programs: []string{"exits-kills"}, count: 1000,
	},
	{
		name: "signal", about: "signals while calls wait and bytes move", kernel: "release", params: loaded,
		programs: []string{"signal-many"}, count: 100_000,
	},
	{
		name: "cycle", about: "unbinding, removing, resetting and unloading under load, rounds of each", kernel: "release", params: loaded,
		programs: []string{"cycle"}, count: 250,
	},
	{
		name: "chaos", about: "twenty clients of every kind that come again beside resets, errors of the bus and removals, and so many unloads", kernel: "debug", params: slow,
		machine: vm.Machine{Ports: true, Memory: 1024}, programs: []string{"chaos"}, count: 100, allow: freed,
	},
	{
		name: "chaos-hostile", about: "the same on devices that lie", kernel: "debug", params: hasty,
		machine: vm.Machine{IOMMU: true, Memory: 1536}, nodes: worst, programs: []string{"chaos-hostile"}, count: 100,
	},
	{
		name: "pairs", about: "two disturbances at once, rounds of each pair", kernel: "release", params: loaded,
		programs: []string{"pairs-many"}, count: 200,
	},
	{
		name: "fair", about: "what an abuser of each resource costs another file, in rounds of 100 calls", kernel: "release", params: loaded,
		programs: []string{"fair"}, count: 20,
	},
	{
		name: "pairs-debug", about: "the same under the debug kernel, and errors of the bus", kernel: "debug", params: slow,
		machine: vm.Machine{Ports: true}, programs: []string{"pairs"}, count: 200, allow: freed,
	},
	{
		name: "hostile", about: "devices that lie, in rounds of up to twelve calls", kernel: "release", params: hasty,
		machine: vm.Machine{IOMMU: true, Memory: 1024}, nodes: worst, programs: on("hostile", worst), count: 20_000,
	},
}

func init() {
	lying := withArgs("chaos")
	lying.env = []string{"NFC_LIES=1"}
	programs["chaos-hostile"] = lying
	programs["pairs-many"] = withArgs("pairs", "-n", "_and_")
	programs["signal-many"] = withArgs("signal")
	programs["exits-kills"] = withArgs("exits", "-n", "killed_many_times")
	for _, j := range campaigns {
		j.name, j.group, j.limit = "campaign-"+j.name, "campaign", campaignTime
		j.device = []string{}
		jobs = append(jobs, j)
	}
}
