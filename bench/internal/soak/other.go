//go:build !linux

package soak

import (
	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

// Add adds nothing: package ring is for Linux.
func Add(*cobra.Command, *cli.Flags) {}
