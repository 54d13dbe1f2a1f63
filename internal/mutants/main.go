// Command mutants applies seeded mistakes to the code of the reports, one at a time and in memory,
// and runs the tests that must fail. It names each mistake that no test found.
//
//	go run ./internal/mutants
//	go run ./internal/mutants --only latency
//	go run ./internal/mutants --list
//
// Run it at the top of the tree. Exit codes: 0 all were found, 1 one was not, 2 bad input.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.SetOutput(stderr)
	only := f.String("only", "", "apply the mistakes of files whose `path` contains this")
	list := f.Bool("list", false, "list the mistakes, and apply none")
	if err := f.Parse(args); err != nil || f.NArg() > 0 {
		return 2
	}
	found, missed := 0, 0
	for _, m := range mistakes {
		if !strings.Contains(m.file, *only) {
			continue
		}
		if *list {
			fmt.Fprintf(stdout, "%s: %s\n", m.file, m.what)
			continue
		}
		start := time.Now()
		how, err := m.try(ctx, ".")
		took := time.Since(start).Round(100 * time.Millisecond)
		if err != nil {
			missed++
			fmt.Fprintf(stdout, "MISSED %s: %s: %v (%v)\n", m.file, m.what, err, took)
			continue
		}
		found++
		fmt.Fprintf(stdout, "found  %s: %s: %s (%v)\n", m.file, m.what, how, took)
	}
	if *list {
		return 0
	}
	fmt.Fprintf(stdout, "%d mistakes found, %d missed\n", found, missed)
	if missed > 0 || ctx.Err() != nil {
		return 1
	}
	return 0
}
