//go:build !linux

package groups

import (
	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

// Add adds nothing: rings, and so member processes, are for Linux.
func Add(*cobra.Command, *cli.Flags) {}
