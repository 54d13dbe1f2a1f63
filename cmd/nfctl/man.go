package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan is for packagers, and therefore hidden.
func newMan(*app) *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Hidden: true,
		Short: "Write the manual pages into a folder",
		Long: `Write the manual pages of all commands into a folder, which is made if it is not
there. SOURCE_DATE_EPOCH, in seconds, is their date, so that they can be
reproduced.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return usageError{err}
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := doc.GenManHeader{Title: "NFCTL", Section: "1", Source: "NFComms", Manual: "NFComms Manual"}
			return doc.GenManTree(root, &header, args[0])
		},
	}
}
