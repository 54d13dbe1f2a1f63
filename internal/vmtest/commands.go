//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// runCommand runs jobs and prints events.
func runCommand(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("vmtest run", flag.ContinueOnError)
	group := f.String("group", "test", "the group of jobs to run if none is named")
	count := f.Int("count", 0, "what programs of jobs with a count get in place of it")
	kernel := f.String("kernel", "debug", "that of jobs under the debug kernel: debug, newer, release")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	chosen, err := choose(*group, f.Args())
	if err = cmp.Or(err, under(*kernel, chosen)); err != nil {
		return err
	}
	w, err := newWorkshop()
	if err != nil {
		return err
	}
	s := &stream{w: os.Stdout}
	if *group == "test" && f.NArg() == 0 {
		if err := w.testQEMU(ctx, s); err != nil {
			return err
		}
	}
	var spent costs
	defer spent.print(os.Stderr)
	for _, j := range chosen {
		if j.count > 0 && *count > 0 {
			j.count = *count
		}
		if err := w.runJob(ctx, j, s, &spent); err != nil {
			u := newSuite(s, "vm/"+j.name)
			u.test("prepare", err.Error())
			u.end()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("stopped after %s: %w", j.name, context.Cause(ctx))
		}
	}
	if err := w.coverage(ctx, s, chosen, f.NArg() == 0); err != nil {
		return err
	}
	if s.failed() {
		return errFailed
	}
	return nil
}

// choose returns the jobs named, or those of a group.
func choose(group string, names []string) ([]job, error) {
	var chosen []job
	for _, name := range names {
		i := slices.IndexFunc(jobs, func(j job) bool { return j.name == name })
		if i < 0 {
			return nil, usageError{fmt.Errorf("no job %q", name)}
		}
		chosen = append(chosen, jobs[i])
	}
	if len(names) > 0 {
		return chosen, nil
	}
	for _, j := range jobs {
		if slices.Contains(strings.Fields(j.group), group) {
			chosen = append(chosen, j)
		}
	}
	if len(chosen) == 0 {
		return nil, usageError{fmt.Errorf("no group %q", group)}
	}
	return chosen, nil
}

// under has the jobs of the debug kernel run under the next one of its kind, or under the release's:
// many rounds in the time of few, without its checks.
func under(kernel string, chosen []job) error {
	if kernels := []string{"debug", "newer", "release"}; !slices.Contains(kernels, kernel) {
		return usageError{fmt.Errorf("kernel %q is not one of %s", kernel, strings.Join(kernels, ", "))}
	}
	for i := range chosen {
		if chosen[i].kernel == "debug" {
			chosen[i].kernel = kernel
			chosen[i].kmemleak = chosen[i].kmemleak && kernel != "release" // which has none
		}
	}
	return nil
}

// runJob runs one job of the table and adds what it cost to spent.
func (w *workshop) runJob(ctx context.Context, j job, s *stream, spent *costs) error {
	b, err := w.prepare(ctx, j, j.list())
	if err != nil {
		return err
	}
	defer func() { spent.add(b.cost) }()
	if j.aloud {
		b.echo = os.Stderr
	}
	if j.wants == "" {
		_, err := b.run(ctx, s)
		return err
	}
	return b.fail(ctx, s)
}

// baseJob is the machine of exec, demo and shell, before flags.
func baseJob(name string) job {
	return job{name: name, kernel: "release", device: []string{}}
}

// execCommand runs one program in a guest and passes on its output and status.
func execCommand(ctx context.Context, args []string) error {
	j := baseJob("exec")
	rest, err := parseMachine("exec", args, &j)
	if err != nil {
		return err
	}
	if len(rest) == 0 {
		return usageError{errors.New("exec needs a program")}
	}
	file, err := filepath.Abs(rest[0])
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	w, err := newWorkshop()
	if err != nil {
		return err
	}
	p := program{name: filepath.Base(file), kind: rawFile, source: []string{file}, args: rest[1:], timeout: j.limit}
	return foreground(ctx, w, j, p)
}

// demoMemory holds the file to move, what comes back, and the archive it came in.
const demoMemory = 1024 // MiB

// demoCommand runs the example's demonstration on the device.
func demoCommand(ctx context.Context, args []string) error {
	j := baseJob("demo")
	j.machine.Memory = demoMemory
	rest, err := parseMachine("demo", args, &j)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError{fmt.Errorf("demo takes no argument, got %q", rest[0])}
	}
	w, err := newWorkshop()
	if err != nil {
		return err
	}
	k, err := w.kernelFor(ctx, j.kernel)
	if err != nil {
		return err
	}
	// A file that is at hand, as often as it takes to move a gigabyte.
	const data = "/demo/data"
	info, err := os.Stat(k.image)
	if err != nil {
		return fmt.Errorf("find something to move: %w", err)
	}
	j.files = append(j.files, item{name: data, from: k.image, perm: 0o644})
	p := programs["bulk"].named("bulk")
	p.args = []string{"--address", "dev:0"}
	for moved := int64(0); moved < 1<<30; moved += info.Size() {
		p.args = append(p.args, data)
	}
	fmt.Println("An emulated machine: every figure below is of an emulated processor, bus and device, and says nothing about hardware.")
	return foreground(ctx, w, j, p)
}

// foreground runs one program with its output on the terminal.
func foreground(ctx context.Context, w *workshop, j job, p program) error {
	b, err := w.prepare(ctx, j, []program{p})
	if err != nil {
		return err
	}
	return b.show(ctx)
}

// show runs a boot's only program with its output on the terminal and returns a statusError for its
// exit status. It prints the findings of the job's own checks last.
func (b *boot) show(ctx context.Context) error {
	var kept bytes.Buffer
	s := &stream{w: &kept}
	b.echo = os.Stdout
	status, err := b.run(ctx, s)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(kept.Bytes()) {
		var e event
		if json.Unmarshal(line, &e) == nil && e.Package == "vm/"+b.job.name && e.Output != "" {
			fmt.Fprint(os.Stderr, "vmtest: ", e.Output)
		}
	}
	switch {
	case status != 0:
		return statusError(status)
	case s.failed():
		return errFailed
	}
	return nil
}
