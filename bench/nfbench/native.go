package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// nativeSources are a program that measures (peer.c) and what each library is to it.
//
//go:embed native
var nativeSources embed.FS

// nativeLibrary is a library in C that others use for what NFComms does. It is
// measured where it is installed: nothing is downloaded.
type nativeLibrary struct {
	id, name string
	compiler string
	flags    []string // after the sources
	launch   []string // starts processes, whose number follows; else the program does
	install  string   // what to do if it is not there
}

var nativeOpenMPI = &nativeLibrary{
	id: "openmpi", name: "OpenMPI", compiler: "mpicc", install: "Debian: libopenmpi-dev, openmpi-bin",
	launch: []string{"mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-np"},
}

// nativeLibraries are those with an echo and a stream of messages, by which they
// are compared. What is not where the compiler looks by itself is found by its
// own variables: CPATH, LIBRARY_PATH, LD_LIBRARY_PATH.
var nativeLibraries = []*nativeLibrary{
	nativeOpenMPI,
	{id: "ucx", name: "UCX", compiler: "cc", flags: []string{"-lucp", "-lucs"}, install: "Debian: libucx-dev"},
	{id: "iceoryx2", name: "iceoryx2", compiler: "cc", flags: []string{"-liceoryx2_ffi_c"}, install: "its C library, from source"},
}

// nativeNames are the values of flags.
func nativeNames() (names []string) {
	for _, l := range nativeLibraries {
		names = append(names, l.id)
	}
	return names
}

// nativeNamed finds a library by its flag's value; nil if it is another word.
func nativeNamed(id string) *nativeLibrary {
	for _, l := range nativeLibraries {
		if l.id == id {
			return l
		}
	}
	return nil
}

// nativeLimit ends a run of a program that hangs. A run is meant to take a tenth of
// a second; a loaded machine makes that seconds.
const nativeLimit = 2 * time.Minute

// nativeProgram is a program of the folder native, built with what is installed.
type nativeProgram struct {
	library *nativeLibrary
	name    string // of reports
	dir     string
	limit   time.Duration
	missing string // why it is not measured
}

// program builds one of two files: peer.c and what the library is to it.
func (l *nativeLibrary) program(ctx context.Context) *nativeProgram {
	p := &nativeProgram{library: l, name: l.name + " in C, other process", limit: nativeLimit}
	return p.build(ctx, "-O2", []embed.FS{nativeSources}, "native/peer.c", "native/"+l.id+".c")
}

// build compiles sources, whose headers lie in their tree, or says why not.
func (p *nativeProgram) build(ctx context.Context, optimise string, trees []embed.FS, sources ...string) *nativeProgram {
	tools := append([]string{p.library.compiler}, p.library.launch[:min(1, len(p.library.launch))]...)
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			p.missing = fmt.Sprintf("%snot installed: there is no %s (%s)", resultNotMeasured, tool, p.library.install)
			return p
		}
	}
	var err error
	p.dir, err = os.MkdirTemp("", "nfbench")
	for _, tree := range trees {
		if err == nil {
			err = os.CopyFS(p.dir, tree)
		}
	}
	if err != nil {
		p.missing = resultNotMeasured + err.Error()
		return p
	}
	args := []string{"-std=c11", "-D_GNU_SOURCE", optimise, "-I", p.dir, "-o", p.path()}
	for _, s := range sources {
		args = append(args, filepath.Join(p.dir, s))
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	cmd := subprocess.Command(ctx, p.library.compiler, append(append(args, "-pthread"), p.library.flags...)...)
	if text, err := groupOutput(cmd, nil, p.grace()); err != nil {
		p.missing = fmt.Sprintf("%s%s: %v: %s (%s)", resultNotMeasured, p.library.compiler, err, compilerSays(text), p.library.install)
	}
	return p
}

// compilerSays is the line of a compiler's output that has the error.
func compilerSays(text []byte) string {
	first, _, _ := strings.Cut(string(text), "\n")
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "error:") || strings.Contains(line, "cannot find") {
			return strings.TrimSpace(line)
		}
	}
	return first
}

// grace is how long a program that is ended may take to end what it has started.
func (p *nativeProgram) grace() time.Duration { return p.limit / 20 }

func (p *nativeProgram) path() string { return filepath.Join(p.dir, "program") }

// remove deletes what was built.
func (p *nativeProgram) remove() error {
	if p.dir == "" {
		return nil
	}
	return os.RemoveAll(p.dir)
}

// nativeRun is what a program printed.
type nativeRun struct {
	batches []float64     // nanoseconds of each
	cpu     time.Duration // of all its processes, while they measured
	used    time.Duration // of all of them, from their start to their end
}

// run starts the program with so many processes. Of its arguments, which peer.c and
// group.c tell, the fourth is how many batches there are at most.
func (p *nativeProgram) run(ctx context.Context, processes int, args ...any) (*nativeRun, error) {
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	line := []string{p.path()}
	if len(p.library.launch) > 0 {
		line = append(append([]string{}, p.library.launch...), fmt.Sprint(processes), p.path())
	}
	for _, a := range args {
		line = append(line, fmt.Sprint(a))
	}
	var errs bytes.Buffer
	cmd := subprocess.Command(limited, line[0], line[1:]...)
	text, err := groupOutput(cmd, &errs, p.grace())
	switch {
	case err != nil && ctx.Err() == nil && limited.Err() != nil:
		return nil, fmt.Errorf("said nothing for %v and was ended", p.limit)
	case err != nil:
		return nil, errors.Join(ctx.Err(), fmt.Errorf("%w: %s", err, lastLine(errs.Bytes())))
	}
	r, err := readNative(text, args[3].(int))
	if err == nil {
		r.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return r, err
}

// lastLine is the end of what a program said, which tells why it ended.
func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// readNative reads what a program printed of so many batches.
func readNative(text []byte, batches int) (*nativeRun, error) {
	r := &nativeRun{}
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var word string
		var v float64
		if _, err := fmt.Sscan(line, &word, &v); err != nil || v < 0 {
			return nil, fmt.Errorf("printed %q", strings.TrimSpace(line))
		}
		seen[word]++
		switch word {
		case "batch":
			r.batches = append(r.batches, v)
		case "cpu":
			r.cpu = time.Duration(v)
		case "wrong":
			if v > 0 {
				return nil, fmt.Errorf("%.0f messages are wrong", v)
			}
		}
	}
	if len(r.batches) == 0 || len(r.batches) > batches || seen["cpu"] != 1 || seen["wrong"] != 1 {
		return nil, fmt.Errorf("printed %d of %d batches, and %d lines with what they took", len(r.batches), batches, seen["cpu"])
	}
	return r, nil
}

// What a native contender does at a time: processes are dear to start, so a run
// lasts about a slice of the comparison.
const (
	nativeMillis  = 100
	nativeBatches = 5000 // at most
	nativeSlots   = 3    // messages that are on their way at most, and one looked at
)

// contender exchanges messages between two processes. Those that wait keep their
// processors, so each run has processes of its own, whose start is not timed.
func (p *nativeProgram) contender(kind, does string, size, batch int) *contender {
	return p.repeated(p.name, does, size, batch, func(ctx context.Context, batches int) (*nativeRun, error) {
		return p.run(ctx, 2, kind, size, nativeSlots, batches, batch, nativeMillis, 0, 0)
	})
}

// repeated is a contender of runs of so many batches, or fewer.
func (p *nativeProgram) repeated(name, does string, size, batch int, run func(ctx context.Context, batches int) (*nativeRun, error)) *contender {
	var cpu, used time.Duration
	c := &contender{name: name, does: does, size: size, batch: batch, batches: nativeBatches, optional: true}
	c.run = func(ctx context.Context, n int) (time.Duration, error) {
		r, err := run(ctx, n/batch)
		if err != nil {
			return 0, err
		}
		c.parts = c.parts[:0]
		var sum time.Duration
		for _, ns := range r.batches {
			c.parts = append(c.parts, time.Duration(ns))
			sum += time.Duration(ns)
		}
		cpu, used = cpu+r.cpu, used+r.used
		return sum, nil
	}
	c.cpu = func() (time.Duration, error) { return cpu, nil }
	c.used = func() time.Duration { return used }
	return c
}

// natives are the programs of one comparison.
type natives []*nativeProgram

// newNatives builds programs of the named libraries.
func newNatives(ctx context.Context, ids []string) natives {
	var all natives
	for _, id := range ids {
		all = append(all, nativeNamed(id).program(ctx))
	}
	return all
}

// missing says which are not measured, and why.
func (all natives) missing() (lines []string) {
	for _, p := range all {
		if p.missing != "" {
			lines = append(lines, p.library.name+": "+p.missing)
		}
	}
	return lines
}

// there are those that can be measured.
func (all natives) there() (programs []*nativeProgram) {
	for _, p := range all {
		if p.missing == "" {
			programs = append(programs, p)
		}
	}
	return programs
}

func (all natives) remove() error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.remove())
	}
	return errors.Join(errs...)
}

// checkNatives refuses names of no library.
func checkNatives(flag string, ids []string) error {
	for _, id := range ids {
		if nativeNamed(id) == nil {
			return usagef("--%s %q is none of %s", flag, id, strings.Join(nativeNames(), ", "))
		}
	}
	return nil
}
