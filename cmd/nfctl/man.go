package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
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
			date := time.Now()
			if epoch := a.getenv("SOURCE_DATE_EPOCH"); epoch != "" {
				seconds, err := strconv.ParseInt(epoch, 10, 64)
				if err != nil {
					return usagef("SOURCE_DATE_EPOCH=%q is not a number of seconds", epoch)
				}
				date = time.Unix(seconds, 0)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return usageError{err}
			}
			cmd.Root().DisableAutoGenTag = true
			return writeManual(cmd.Root(), args[0], date.UTC())
		},
	}
}

// writeManual writes the pages of a command and of those below it.
func writeManual(cmd *cobra.Command, folder string, date time.Time) error {
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writeManual(c, folder, date); err != nil {
			return err
		}
	}
	page, err := manual(cmd, date)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	return os.WriteFile(filepath.Join(folder, name), page, 0o644)
}

var (
	// tableLine is a line of a table in a help text.
	tableLine = regexp.MustCompile(`(?m)^  .*$`)
	// optionTab is what cobra writes between an option and its text.
	optionTab = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-[^\n]*)\n\t`)
)

// manual returns the page of a command: cobra's, with tables that keep their
// lines, a date and options as manual pages have them.
func manual(cmd *cobra.Command, date time.Time) ([]byte, error) {
	long := cmd.Long
	defer func() { cmd.Long = long }()
	cmd.Long = strings.ReplaceAll(tableLine.ReplaceAllString(long, "    $0"), ":\n    ", ":\n\n    ")
	var b bytes.Buffer
	header := doc.GenManHeader{Section: "1", Source: "NFComms", Manual: "NFComms Manual", Date: &date}
	if err := doc.GenMan(cmd, &header, &b); err != nil {
		return nil, err
	}
	page := bytes.Replace(b.Bytes(), []byte(date.Format(`"Jan 2006"`)), []byte(date.Format(`"2006-01-02"`)), 1)
	return optionTab.ReplaceAll(page, []byte(".TP\n$1\n")), nil
}
