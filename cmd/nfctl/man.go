package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/cmd/internal/manual"
)

// newMan is for packagers, and therefore hidden.
func newMan(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Hidden: true,
		Short: "Write the manual pages into a folder",
		Long: `Write the manual pages of all commands into a folder, which is made if it is not
there. SOURCE_DATE_EPOCH, in seconds, is their date, so that they can be
reproduced.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			date, err := manual.Date(a.getenv("SOURCE_DATE_EPOCH"))
			if err != nil {
				return usageError{err}
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return usageError{err}
			}
			cmd.Root().DisableAutoGenTag = true
			explainAll(cmd.Root())
			return manual.Write(cmd.Root(), "1", args[0], date)
		},
	}
}

// explainAll adds to the texts of the commands below cmd the keys of their output.
func explainAll(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		_, name, _ := strings.Cut(c.CommandPath(), " ")
		c.Long = explained(name, cmp.Or(c.Long, c.Short))
		explainAll(c)
	}
}
