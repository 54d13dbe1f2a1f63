package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, commands...)
	stop()
	os.Exit(code)
}

// commands are all of nfbench.
var commands = []adder{
	addLatency, addThroughput, addPeers, addCrowd, addScale, addReports, addModels, addStack, addChild, addLoad,
	addLinks, addHMF, addGroups, addSoak, addIdle,
}
