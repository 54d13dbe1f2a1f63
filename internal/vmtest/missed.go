//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// fail runs a boot that must fail, and reports whether it did as its job wants.
func (b *boot) fail(ctx context.Context, s *stream) error {
	var kept bytes.Buffer
	inner := &stream{w: &kept}
	if _, err := b.run(ctx, inner); err != nil {
		return err
	}
	noticed, trouble := missed(kept.Bytes(), inner.failed(), b.job.wants)
	row := fmt.Sprintf("%-28s caught: %s", b.job.name, noticed)
	if trouble != "" {
		row = fmt.Sprintf("%-28s MISSED", b.job.name)
	}
	fmt.Fprintln(os.Stderr, row)
	u := newSuite(s, "vm/"+b.job.name)
	u.outcome("caught", row+"\n"+trouble, passOrFail(trouble == ""))
	u.end()
	return nil
}

// missed looks for what a run had to fail with: the line that says so, or what
// is wrong.
func missed(events []byte, failed bool, wants string) (noticed, trouble string) {
	var output strings.Builder
	for line := range bytes.Lines(events) {
		var e event
		if json.Unmarshal(line, &e) == nil {
			output.WriteString(e.Output)
		}
	}
	if !failed {
		return "", "nothing failed, want a failure with " + wants
	}
	re := regexp.MustCompile(wants)
	for line := range strings.Lines(output.String()) {
		if re.MatchString(line) {
			return strings.TrimSpace(line), ""
		}
	}
	return "", "failed without " + wants + ":\n" + output.String()
}
