package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Date is the date of a page that can be reproduced: SOURCE_DATE_EPOCH, in
// seconds, or now if it is empty.
func Date(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Now().UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q is not a number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Write writes the pages of a command and of those below it to a folder.
func Write(cmd *cobra.Command, section, folder string, date time.Time) error {
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := Write(c, section, folder, date); err != nil {
			return err
		}
	}
	text, err := Page(cmd, section, date)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + "." + section
	return os.WriteFile(filepath.Join(folder, name), text, 0o644)
}

var (
	// tableLine is a line of a table in a help text.
	tableLine = regexp.MustCompile(`(?m)^  .*$`)
	// optionTab is what cobra writes between an option and its text.
	optionTab = regexp.MustCompile(`(?m)^(?:\.PP\n)?(\\fB-[^\n]*)\n\t`)
)

// Page returns the page of a command: cobra's, with tables that keep their
// lines, a date and options as manual pages have them.
func Page(cmd *cobra.Command, section string, date time.Time) ([]byte, error) {
	long := cmd.Long
	defer func() { cmd.Long = long }()
	cmd.Long = strings.ReplaceAll(tableLine.ReplaceAllString(long, "    $0"), ":\n    ", ":\n\n    ")
	var b bytes.Buffer
	header := doc.GenManHeader{Section: section, Source: "NFComms", Manual: "NFComms Manual", Date: &date}
	if err := doc.GenMan(cmd, &header, &b); err != nil {
		return nil, err
	}
	text := bytes.Replace(b.Bytes(), []byte(date.Format(`"Jan 2006"`)), []byte(date.Format(`"2006-01-02"`)), 1)
	return optionTab.ReplaceAll(text, []byte(".TP\n$1\n")), nil
}
