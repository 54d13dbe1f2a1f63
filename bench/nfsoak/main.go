//go:build linux

// Command nfsoak moves data with checksums between processes that are killed, stopped and started
// again, over a ring or a device, for minutes or weeks, and holds the books of both sides.
package main

import (
	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/soak"
)

func main() { cli.Main(soak.New()) }
