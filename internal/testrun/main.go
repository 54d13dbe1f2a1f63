package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// counts is the outcome of one suite, or of all.
type counts struct {
	passed, failed, skipped int
}

func (c *counts) add(o counts) {
	c.passed += o.passed
	c.failed += o.failed
	c.skipped += o.skipped
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// suite is one command and the way its tests are counted.
type suite struct {
	kind, name, command string
}

// reader consumes a suite's output and counts its tests.
type reader interface {
	// line takes one line of output, without its end.
	line(text string)
	// end is told how the command ended and returns the counts.
	end(err error) counts
}

func main() {
	skips := flag.String("skips", "", "file of tests that may be skipped")
	rules := flag.String("proofs", "", "document whose rules name tests that must have passed")
	flag.Parse()
	allowed, err := readSkips(*skips)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	suites, err := parseSuites(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	held, err := readRules(*rules)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	total := runAll(os.Stdout, suites, allowed, held)
	fmt.Println(total)
	if total.failed > 0 {
		os.Exit(1)
	}
}

// parseSuites reads arguments of the form "KIND NAME: COMMAND".
func parseSuites(args []string) ([]suite, error) {
	var suites []suite
	for _, arg := range args {
		head, command, ok := strings.Cut(arg, ": ")
		kind, name, named := strings.Cut(head, " ")
		if !ok || !named {
			return nil, fmt.Errorf("suite %q is not \"KIND NAME: COMMAND\"", arg)
		}
		if kind != "go" && kind != "sum" && kind != "step" {
			return nil, fmt.Errorf("suite %q: kind %q is not go, sum or step", arg, kind)
		}
		suites = append(suites, suite{kind, name, command})
	}
	if len(suites) == 0 {
		return nil, fmt.Errorf("no suite given")
	}
	return suites, nil
}

// runAll runs every suite, also after a failure, and returns the sum.
func runAll(w io.Writer, suites []suite, allowed skipList, held *ruleBook) counts {
	var total counts
	for _, s := range suites {
		fmt.Fprintf(w, "== %s: %s\n", s.name, s.command)
		c := run(s, newReader(w, s, allowed, held))
		fmt.Fprintf(w, "== %s: %d passed, %d failed, %d skipped\n\n", s.name, c.passed, c.failed, c.skipped)
		total.add(c)
	}
	total.add(held.judge(w))
	return total
}

func newReader(w io.Writer, s suite, allowed skipList, held *ruleBook) reader {
	switch s.kind {
	case "go":
		return newGoReader(w, allowed, held)
	case "sum":
		return &sumReader{w: w}
	}
	return &stepReader{w: w}
}

// run executes a suite's command and feeds its output to r line by line.
func run(s suite, r reader) counts {
	cmd := exec.Command("sh", "-c", s.command)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan error, 1) // one result, read once
	go func() {
		err := cmd.Run()
		in.Close()
		done <- err
	}()
	eachLine(out, r.line)
	return r.end(<-done)
}
