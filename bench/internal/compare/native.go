package compare

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// NativeSources are a program that measures (peer.c) and what each library is to it.
//
//go:embed native
var NativeSources embed.FS

// NativeLibrary is a library in C that others use for what NFComms does. It is
// measured where it is installed: nothing is downloaded.
type NativeLibrary struct {
	ID, Name string
	Compiler string
	source   string   // of the folder native; else the ID's
	Flags    []string // after the sources
	launch   []string // starts processes, whose number follows; else the program does
	Install  string   // what to do if it is not there
	inPlace  bool     // its messages are written and read where they lie
}

// NativeOpenMPI is the only one of them with steps of many members.
var NativeOpenMPI = &NativeLibrary{
	ID: "openmpi", Name: "OpenMPI", Compiler: "mpicc", Install: "Debian: libopenmpi-dev, openmpi-bin",
	Flags: []string{"-DSEND=MPI_Send"}, launch: mpirun,
}

// nativeSynchronous is OpenMPI whose sends return when they are received, as ours do.
var nativeSynchronous = &NativeLibrary{
	ID: "openmpi-ssend", Name: "OpenMPI's synchronous send", Compiler: "mpicc", Install: "Debian: libopenmpi-dev, openmpi-bin",
	source: "openmpi.c", Flags: []string{"-DSEND=MPI_Ssend"}, launch: mpirun,
}

var mpirun = []string{"mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-np"}

// NativeLibraries are those with an echo and a stream of messages, by which they
// are compared. The variables of the compiler name libraries that are elsewhere:
// CPATH, LIBRARY_PATH, LD_LIBRARY_PATH.
var NativeLibraries = []*NativeLibrary{
	NativeOpenMPI, nativeSynchronous,
	{ID: "ucx", Name: "UCX", Compiler: "cc", Flags: []string{"-lucp", "-lucs"}, Install: "Debian: libucx-dev"},
	{ID: "iceoryx2", Name: "iceoryx2", Compiler: "cc", Flags: []string{"-liceoryx2_ffi_c"}, inPlace: true, Install: "its C library, from source"},
}

// NativeNames are the values of flags.
func NativeNames() (names []string) {
	for _, l := range NativeLibraries {
		names = append(names, l.ID)
	}
	return names
}

// NativeNamed finds a library by its flag's value; nil if it is another word.
func NativeNamed(id string) *NativeLibrary {
	for _, l := range NativeLibraries {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// NativeLimit ends a run of a program that hangs. A run is meant to take a tenth of
// a second; a loaded machine makes that seconds.
const NativeLimit = 2 * time.Minute

// NativeProgram is a program of the folder native, built with what is installed.
type NativeProgram struct {
	Library *NativeLibrary
	Name    string // of reports
	Dir     string
	Limit   time.Duration
	Missing string // why it is not measured
}

// Program builds one of two files: peer.c and what the library is to it.
func (l *NativeLibrary) Program(ctx context.Context) *NativeProgram {
	p := &NativeProgram{Library: l, Name: l.Name + " in C, other process", Limit: NativeLimit}
	return p.Build(ctx, "-O2", []embed.FS{NativeSources}, "native/peer.c", "native/"+cmp.Or(l.source, l.ID+".c"))
}

// Build compiles sources, whose headers lie in their tree, or says why not.
func (p *NativeProgram) Build(ctx context.Context, optimise string, trees []embed.FS, sources ...string) *NativeProgram {
	tools := append([]string{p.Library.Compiler}, p.Library.launch[:min(1, len(p.Library.launch))]...)
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			p.Missing = fmt.Sprintf("%snot installed: there is no %s (%s)", cli.ResultNotMeasured, tool, p.Library.Install)
			return p
		}
	}
	var err error
	p.Dir, err = os.MkdirTemp("", "nfbench")
	for _, tree := range trees {
		if err == nil {
			err = os.CopyFS(p.Dir, tree)
		}
	}
	if err != nil {
		p.Missing = cli.ResultNotMeasured + err.Error()
		return p
	}
	args := []string{"-std=c11", "-D_GNU_SOURCE", optimise, "-I", p.Dir, "-o", p.Path()}
	for _, s := range sources {
		args = append(args, filepath.Join(p.Dir, s))
	}
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	cmd := subprocess.Command(ctx, p.Library.Compiler, append(append(args, "-pthread"), p.Library.Flags...)...)
	if text, err := GroupOutput(cmd, nil, p.Grace()); err != nil {
		p.Missing = fmt.Sprintf("%s%s: %v: %s (%s)", cli.ResultNotMeasured, p.Library.Compiler, err, compilerSays(text), p.Library.Install)
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

// Grace is how long a program that is ended may take to end what it has started.
func (p *NativeProgram) Grace() time.Duration { return p.Limit / 20 }

// Path is the file of the program.
func (p *NativeProgram) Path() string { return filepath.Join(p.Dir, "program") }

// Remove deletes what was built.
func (p *NativeProgram) Remove() error {
	if p.Dir == "" {
		return nil
	}
	return os.RemoveAll(p.Dir)
}

// NativeRun is what a program printed.
type NativeRun struct {
	Batches []float64     // nanoseconds of each
	CPU     time.Duration // of all its processes, while they measured
	Used    time.Duration // of all of them, from their start to their end
}

// Run starts the program with so many processes. Of its arguments, which peer.c and
// group.c tell, the fourth is how many batches there are at most.
func (p *NativeProgram) Run(ctx context.Context, processes int, args ...any) (*NativeRun, error) {
	limited, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	line := []string{p.Path()}
	if len(p.Library.launch) > 0 {
		line = append(append([]string{}, p.Library.launch...), fmt.Sprint(processes), p.Path())
	}
	for _, a := range args {
		line = append(line, fmt.Sprint(a))
	}
	var errs bytes.Buffer
	cmd := subprocess.Command(limited, line[0], line[1:]...)
	text, err := GroupOutput(cmd, &errs, p.Grace())
	switch {
	case err != nil && ctx.Err() == nil && limited.Err() != nil:
		return nil, fmt.Errorf("said nothing for %v and was ended", p.Limit)
	case err != nil:
		return nil, errors.Join(ctx.Err(), fmt.Errorf("%w: %s", err, LastLine(errs.Bytes())))
	}
	r, err := readNative(text, args[3].(int))
	if err == nil {
		r.Used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return r, err
}

// LastLine is the end of what a program said, which tells why it ended.
func LastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// readNative reads what a program printed of so many batches.
func readNative(text []byte, batches int) (*NativeRun, error) {
	r := &NativeRun{}
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
			r.Batches = append(r.Batches, v)
		case "cpu":
			r.CPU = time.Duration(v)
		case "wrong":
			if v > 0 {
				return nil, fmt.Errorf("%.0f messages are wrong", v)
			}
		}
	}
	if len(r.Batches) == 0 || len(r.Batches) > batches || seen["cpu"] != 1 || seen["wrong"] != 1 {
		return nil, fmt.Errorf("printed %d of %d batches, and %d lines with what they took", len(r.Batches), batches, seen["cpu"])
	}
	return r, nil
}

// Work of a native contender at a time: processes are dear to start, so a run
// lasts about a slice of the comparison.
const (
	NativeMillis  = 100
	NativeBatches = 5000 // at most
	NativeSlots   = 3    // messages that are on their way at most, and one looked at
)

// Contender exchanges messages between two processes. Those that wait keep their
// processors, so each run has processes of its own, whose start is not timed.
func (p *NativeProgram) Contender(kind, does string, size, batch int) *Contender {
	return p.Repeated(p.Name, does, size, batch, func(ctx context.Context, batches int) (*NativeRun, error) {
		return p.Run(ctx, 2, kind, size, NativeSlots, batches, batch, NativeMillis, 0, 0)
	})
}

// Repeated is a contender of runs of so many batches, or fewer.
func (p *NativeProgram) Repeated(name, does string, size, batch int, run func(ctx context.Context, batches int) (*NativeRun, error)) *Contender {
	var cpu, used time.Duration
	c := &Contender{Name: name, Does: does, Size: size, Batch: batch, batches: NativeBatches, optional: true}
	c.Run = func(ctx context.Context, n int) (time.Duration, error) {
		r, err := run(ctx, n/batch)
		if err != nil {
			return 0, err
		}
		c.parts = c.parts[:0]
		var sum time.Duration
		for _, ns := range r.Batches {
			c.parts = append(c.parts, time.Duration(ns))
			sum += time.Duration(ns)
		}
		cpu, used = cpu+r.CPU, used+r.Used
		return sum, nil
	}
	c.CPU = func() (time.Duration, error) { return cpu, nil }
	c.Used = func() time.Duration { return used }
	return c
}

// Natives are the programs of one comparison.
type Natives []*NativeProgram

// NewNatives builds programs of the named libraries.
func NewNatives(ctx context.Context, ids []string) Natives {
	var all Natives
	for _, id := range ids {
		all = append(all, NativeNamed(id).Program(ctx))
	}
	return all
}

// Missing says which are not measured, and why.
func (all Natives) Missing() (lines []string) {
	for _, p := range all {
		if p.Missing != "" {
			lines = append(lines, p.Library.Name+": "+p.Missing)
		}
	}
	return lines
}

// There are those that can be measured.
func (all Natives) There() (programs []*NativeProgram) {
	for _, p := range all {
		if p.Missing == "" {
			programs = append(programs, p)
		}
	}
	return programs
}

// Remove deletes what was built of all.
func (all Natives) Remove() error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Remove())
	}
	return errors.Join(errs...)
}

// CheckNatives refuses names of no library.
func CheckNatives(flag string, ids []string) error {
	for _, id := range ids {
		if NativeNamed(id) == nil {
			return cli.Usagef("--%s %q is none of %s", flag, id, strings.Join(NativeNames(), ", "))
		}
	}
	return nil
}
