// Command mutants changes the code one place at a time, outside the tree, and runs the tests that must
// fail. It names each change that no test found.
//
//	go run ./internal/mutants                         mistakes by hand in the code of the reports
//	go run ./internal/mutants --only latency          those of one file
//	go run ./internal/mutants --places                places that it finds in the code of the protocol
//	go run ./internal/mutants --places --slice 10     ten of them, others each day
//	go run ./internal/mutants --list
//
// Run it at the top of the tree. Exit codes: 0 all were found, 1 one was not, 2 bad input.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// change is one of a file, and what tries it.
type change struct {
	name   string
	file   string
	byHand bool // it must compile
	try    func(ctx context.Context) (how string, err error)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.SetOutput(stderr)
	only := f.String("only", "", "make the changes of files whose `path` contains this")
	list := f.Bool("list", false, "list the changes, and make none")
	inPlaces := f.Bool("places", false, "change the places that the tool finds, in place of the mistakes by hand")
	slice := f.Int("slice", 0, "make `N` of the changes, others each day; 0: all")
	if err := f.Parse(args); err != nil || f.NArg() > 0 || *slice < 0 {
		return 2
	}
	all, err := changes(*inPlaces, *only)
	if err == nil && *inPlaces && !*list {
		err = copyTree(".")
	}
	if err != nil {
		fmt.Fprintln(stderr, "mutants:", err)
		return 2
	}
	all = rotate(all, *slice, time.Now())
	if *list {
		for _, c := range all {
			fmt.Fprintln(stdout, c.name)
		}
		return 0
	}
	return makeAll(ctx, all, stdout)
}

// changes are the places or the mistakes of files whose path contains a text.
func changes(inPlaces bool, only string) (all []change, err error) {
	for _, m := range mistakes {
		if !inPlaces && strings.Contains(m.file, only) {
			all = append(all, change{m.file + ": " + m.what, m.file, true, func(ctx context.Context) (string, error) { return m.try(ctx, ".") }})
		}
	}
	if !inPlaces {
		return all, nil
	}
	places, err := find(".")
	for _, p := range places {
		if strings.Contains(p.file, only) {
			all = append(all, change{p.String(), p.file, false, p.try})
		}
	}
	return all, err
}

// rotate returns n of the changes, those of a day; or all for 0.
func rotate(all []change, n int, now time.Time) (slice []change) {
	if n == 0 || n >= len(all) {
		return all
	}
	day := int(now.Unix() / (24 * 60 * 60))
	for i := range n {
		slice = append(slice, all[(day*n+i)%len(all)])
	}
	return slice
}

// makeAll makes changes, prints how each ended, and returns the exit code.
func makeAll(ctx context.Context, all []change, stdout io.Writer) int {
	var killed, same, void, missed int
	for _, c := range all {
		start := time.Now()
		how, err := c.try(ctx)
		took := time.Since(start).Round(100 * time.Millisecond)
		if ctx.Err() != nil {
			return 1
		}
		switch alike := new(equivalentError); {
		case err == nil:
			killed++
			fmt.Fprintf(stdout, "found  %s: %s (%v)\n", c.name, how, took)
		case errors.As(err, alike):
			same++
			fmt.Fprintf(stdout, "same   %s: %v\n", c.name, err)
		case errors.Is(err, errNotBuilt) && !c.byHand:
			void++
			fmt.Fprintf(stdout, "void   %s: %v (%v)\n", c.name, err, took)
		default:
			missed++
			fmt.Fprintf(stdout, "MISSED %s: %v (%v)\n", c.name, err, took)
		}
	}
	fmt.Fprintf(stdout, "%d changes found, %d missed, %d change nothing, %d do not compile\n", killed, missed, same, void)
	if missed > 0 {
		return 1
	}
	return 0
}

// try makes the change at a place, and runs the tests of its file one after the other.
func (f found) try(ctx context.Context) (how string, err error) {
	if why := f.equivalent(); why != "" {
		return "", equivalentError(why)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.file)))
	if err != nil {
		return "", err
	}
	list := f.tests
	if f.kind == order {
		list = orderTests
	}
	for _, t := range list {
		how, err = t.try(ctx, root, f.file, f.apply(string(text)))
		if !errors.Is(err, errNotFound) {
			return how, err
		}
	}
	return "", errNotFound
}
