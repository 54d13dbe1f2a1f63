package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
)

// mostFailures bounds how many lines the last part of the report repeats.
const mostFailures = 60

// failureLine is a line that names a failure or says what it is: also a line that a test of another
// package prints, a goroutine that stayed, the first line of a sanitizer, and the target that make gave up.
// A package that passed prints none: its output is not shown.
var failureLine = regexp.MustCompile(
	`^\s*(FAIL\b|--- FAIL|---- |panic:|fatal error:|WARNING: DATA RACE|Error Trace:|Error:|Messages:|\w+\.go:\d+: |\w+_test\.c:\d+|\[Goroutine |==\d+==ERROR: |make(\[\d+\])?: \*\*\* )`)

// failures keeps the lines that name what failed, for the end of the report: of a
// long log often only the end is at hand.
type failures struct {
	mu    sync.Mutex
	lines []string
	more  int // lines beyond mostFailures
}

// look keeps a line of a suite if it names a failure.
func (f *failures) look(suite string, line []byte) {
	if !failureLine.Match(line) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.lines) == mostFailures {
		f.more++
		return
	}
	f.lines = append(f.lines, suite+strings.TrimSpace(string(line)))
}

// report prints them, or nothing where nothing failed.
func (f *failures) report(w io.Writer, failed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed == 0 {
		return
	}
	fmt.Fprintln(w, "== what failed")
	for _, line := range f.lines {
		fmt.Fprintln(w, line)
	}
	if f.more > 0 {
		fmt.Fprintf(w, "and %d lines more\n", f.more)
	}
	fmt.Fprintln(w)
}
