package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
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
	lanes := flag.Int("lanes", 1, "suites that run at the same time")
	flag.Parse()
	if *lanes < 1 {
		fmt.Fprintf(os.Stderr, "testrun: -lanes %d: must be at least 1\n", *lanes)
		os.Exit(2)
	}
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
	r := &runner{out: &output{w: os.Stdout}, allowed: allowed, held: held}
	total := r.all(suites, *lanes)
	r.times.report(os.Stdout)
	r.out.failures.report(os.Stdout, total.failed)
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

// runner runs suites. Everything in it may be used by several at once.
type runner struct {
	out     *output
	allowed skipList
	held    *ruleTable
	times   times
}

// all runs every suite, also after a failure, in as many lanes as are asked
// for, and returns the sum. A suite starts when a lane is free, in their order.
func (r *runner) all(suites []suite, lanes int) counts {
	var (
		mu    sync.Mutex // guards total
		total counts
		wg    sync.WaitGroup
		queue = make(chan suite)
	)
	for range lanes {
		wg.Go(func() {
			for s := range queue {
				c := r.one(s, lanes > 1)
				mu.Lock()
				total.add(c)
				mu.Unlock()
			}
		})
	}
	for _, s := range suites {
		queue <- s
	}
	close(queue)
	wg.Wait()
	total.add(r.held.check(&prefixed{to: r.out}))
	return total
}

// one runs a suite. Where others run beside it, each of its lines begins with
// its name.
func (r *runner) one(s suite, beside bool) counts {
	w := &prefixed{to: r.out}
	if beside {
		w.prefix = s.name + ": "
	}
	fmt.Fprintf(r.out, "== %s: %s\n", s.name, s.command)
	begin := time.Now()
	c, busy := run(s, r.reader(w, s))
	spent := time.Since(begin)
	w.flush()
	r.times.add("suite", fmt.Sprintf("%s (%.0f s of processors)", s.name, busy.Seconds()), spent)
	fmt.Fprintf(r.out, "== %s: %v, %.0f s\n\n", s.name, c, spent.Seconds())
	return c
}

func (r *runner) reader(w io.Writer, s suite) reader {
	switch s.kind {
	case "go":
		return newGoReader(w, r.allowed, r.held, &r.times)
	case "sum":
		return &sumReader{w: w}
	}
	return &stepReader{w: w}
}

// run executes a suite's command and feeds its output to r line by line. It returns what r counted, and
// the processor time of the command and of its children.
func run(s suite, r reader) (c counts, busy time.Duration) {
	cmd := exec.Command("sh", "-c", s.command)
	cmd.WaitDelay = time.Minute // for output that a process which the suite left keeps open
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	done := make(chan error, 1) // one result, read once
	go func() {
		err := cmd.Run()
		in.Close()
		done <- err
	}()
	eachLine(out, r.line)
	c = r.end(<-done)
	if cmd.ProcessState != nil {
		busy = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return c, busy
}
