package main

import (
	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/crowd"
	"github.com/nfcomms/nfcomms/bench/internal/groups"
	"github.com/nfcomms/nfcomms/bench/internal/hmf"
	"github.com/nfcomms/nfcomms/bench/internal/idle"
	"github.com/nfcomms/nfcomms/bench/internal/latency"
	"github.com/nfcomms/nfcomms/bench/internal/links"
	"github.com/nfcomms/nfcomms/bench/internal/load"
	"github.com/nfcomms/nfcomms/bench/internal/models"
	"github.com/nfcomms/nfcomms/bench/internal/peers"
	"github.com/nfcomms/nfcomms/bench/internal/report"
	"github.com/nfcomms/nfcomms/bench/internal/scale"
	"github.com/nfcomms/nfcomms/bench/internal/stack"
	"github.com/nfcomms/nfcomms/bench/internal/throughput"
)

func main() { cli.Main(cli.Root(commands...)) }

// commands are all of nfbench.
var commands = []cli.Adder{
	latency.Add, throughput.Add, peers.Add, crowd.Add, scale.Add, report.Add, models.Add, stack.Add, compare.Add, load.Add,
	links.Add, hmf.Add, groups.Add, idle.Add,
}
