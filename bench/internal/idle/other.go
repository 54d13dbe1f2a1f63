//go:build !linux

package idle

import (
	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

// Add adds nothing: devices that processes share are for Linux.
func Add(*cobra.Command, *cli.Flags) {}
