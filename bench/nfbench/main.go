package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

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
	"github.com/nfcomms/nfcomms/bench/internal/soak"
	"github.com/nfcomms/nfcomms/bench/internal/stack"
	"github.com/nfcomms/nfcomms/bench/internal/throughput"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr, commands...)
	stop()
	os.Exit(code)
}

// commands are all of nfbench.
var commands = []cli.Adder{
	latency.Add, throughput.Add, peers.Add, crowd.Add, scale.Add, report.Add, models.Add, stack.Add, compare.Add, load.Add,
	links.Add, hmf.Add, groups.Add, soak.Add, idle.Add,
}
