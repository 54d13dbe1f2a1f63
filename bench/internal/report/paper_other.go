//go:build !linux

package report

import (
	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

// addPaper adds nothing: much of what it measures is between processes, on rings.
func addPaper(*cobra.Command, *cli.Flags) {}
