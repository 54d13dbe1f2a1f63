package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	// A closed reader shall be an error of the write, not a death
	// that leaves a terminal or a device as it was.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}, os.Getenv)
	stop()
	os.Exit(code)
}

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run executes one command line and returns its exit code. Each failure is
// one line on s.err.
func run(ctx context.Context, args []string, s streams, getenv func(string) string) int {
	out := bufio.NewWriter(s.out)
	a := &app{streams: s, buffered: out, getenv: getenv}
	root := newRoot(a)
	root.SetArgs(append([]string{}, args...)) // cobra takes nil for "ask the system"
	root.SetIn(s.in)
	root.SetOut(out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.started {
		err = usageError{err}
	}
	if failed := out.Flush(); err == nil {
		err = failed
	}
	code := exitCode(ctx, err)
	switch code {
	case exitOK, exitPipe:
	case exitInterrupted:
		fmt.Fprintln(s.err, "nfctl: interrupted")
	default:
		fmt.Fprintf(s.err, "nfctl: %s\n", message(err))
	}
	return code
}

// message returns the one line that shows a person the error.
func message(err error) string {
	return escape(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}
