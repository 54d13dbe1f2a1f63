package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/crowd"
	"github.com/nfcomms/nfcomms/bench/internal/latency"
	"github.com/nfcomms/nfcomms/bench/internal/peers"
	"github.com/nfcomms/nfcomms/bench/internal/scale"
	"github.com/nfcomms/nfcomms/bench/internal/stack"
	"github.com/nfcomms/nfcomms/bench/internal/throughput"
)

// allOptions are the flags of the command.
type allOptions struct{ folder }

func newAll(c *cli.Flags) *cobra.Command {
	o := allOptions{folder{all: allNames(), kind: "measurement"}}
	cmd := &cobra.Command{
		Use:   "all",
		Short: "Every measurement into a folder, and every goal",
		Long: `Run the other commands one after the other and write to a folder what each prints, as
text, JSON and a picture, and report.md with all of it. The end is a table of the
project's goals: reached, missed by how much, or not measured and why. Goals of what
this command does not run say which command does.

A command that fails leaves its goals unmeasured, and the exit code is 1.`,
		Example: `  nfbench all --short --out bench
  nfbench all --out bench --only peers,hmf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmp.Or(o.check(), c.Check()); err != nil {
				return err
			}
			return o.run(cmd, c)
		},
	}
	o.flags(cmd, "a look in two or three minutes")
	return cmd
}

// measurement is a command line of this program.
type measurement struct {
	add   cli.Adder
	name  string // of its files
	args  string
	short string // what is added for a quick look
	// report makes room for what it prints.
	report func() cli.Report
}

// measurements are all of them, in the order of the report. Those of package ring
// are for Linux.
func measurements() []measurement {
	return append([]measurement{
		{latency.Add, "latency", "latency", "--short", func() cli.Report { return &latency.Report{} }},
		{peers.Add, "peers", "peers", "--short", func() cli.Report { return &peers.Report{} }},
		{throughput.Add, "throughput", "throughput --targets 1,8", "--short", func() cli.Report { return &throughput.Report{} }},
		{crowd.Add, "crowd", "crowd --sizes 56,4KiB,64KiB --load 0,1", "--short", func() cli.Report { return &crowd.Report{} }},
		{scale.Add, "scale", "scale", "--short", func() cli.Report { return &scale.Report{} }},
		{stack.Add, "stack", "stack", "--short", func() cli.Report { return &stack.Report{} }},
	}, ringMeasurements()...)
}

func allNames() (names []string) {
	for _, m := range measurements() {
		names = append(names, m.name)
	}
	return names
}

// allWanted are the goals in the order of the report, and which command measures
// those that none of the measurements does.
var allWanted = []struct{ id, what, elsewhere string }{
	{"T1", "56 B Send beside a Go channel", ""},
	{"T1e", "56 B by Call, and its answer, beside a Go channel", ""},
	{"T2", "56 B between two processes", "nfbench peers --address shm:PATH"},
	{"T3", "what an idle device and a blocked call cost", ""},
	{"T4", "a message to a device at rest beside futexes", ""},
	{"T5", "transfers beside memcpy", ""},
	{"T6", "many callers beside Go channels", ""},
	{"T6b", "transfers of many callers beside one", ""},
	{"T7", "bulk between two processes", "nfbench peers --address shm:PATH"},
	{"T8", "56 B transfer beside a message", ""},
	{"T9", "throughput over sizes", ""},
	{"T10", "start-up cost", ""},
	{"T11", "open channels and blocked senders", ""},
	{"T12", "allocations", ""},
	{"T13", "the same under load", ""},
	{"T14", "register accesses", "needs the kernel module: make vm-test"},
	{"T15", "one hop more", "nfbench fabric"},
	{"T16", "group step", ""},
	{"T17", "ring between processes", ""},
	{"T18", "tracing one call in 64", ""},
	{"T19", "memory that is given away, between two processes", "nfbench peers --address shm:PATH"},
}

// AllReport is the JSON of the command.
type AllReport struct {
	Command string      `json:"command"`
	Machine cli.Machine `json:"machine"`
	Folder  string      `json:"folder"`
	Parts   []AllPart   `json:"parts"`
	Goals   []cli.Goal  `json:"goals"`
}

// AllPart is one measurement.
type AllPart struct {
	Name    string   `json:"name"`
	Command string   `json:"command"`
	Files   []string `json:"files"`
	// Failed is why there is none.
	Failed string `json:"failed,omitempty"`

	text  string
	goals []cli.Goal
}

// run makes all measurements.
func (o *allOptions) run(cmd *cobra.Command, c *cli.Flags) error {
	r := &AllReport{Command: "all", Machine: cli.ThisMachine(), Folder: o.out}
	failed := 0
	for _, m := range measurements() {
		if !slices.Contains(o.only, m.name) {
			continue
		}
		p := o.part(cmd.Context(), m, c.Address, cmd.ErrOrStderr())
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		if p.Failed != "" {
			failed++
			fmt.Fprintf(cmd.ErrOrStderr(), "nfbench %s: %s\n", p.Command, p.Failed)
		}
		r.Parts = append(r.Parts, p)
	}
	r.Goals = r.goals(o.only)
	page, err := render("all.md.tmpl", r)
	if err == nil {
		err = o.write(map[string][]byte{"report.md": page})
	}
	if err != nil {
		return err
	}
	if err := c.Print(cmd.OutOrStdout(), r); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d measurements failed", failed, len(r.Parts))
	}
	return nil
}

// part makes one measurement and writes its files.
func (o *allOptions) part(ctx context.Context, m measurement, address string, errw io.Writer) AllPart {
	line := m.args
	if o.short {
		line += " " + m.short
	}
	p := AllPart{Name: m.name, Command: line}
	picture := m.name + ".svg"
	args := append(strings.Fields(line), "--address", address, "--output", "json", "--plot", filepath.Join(o.out, picture))
	var out, errs bytes.Buffer
	root := cli.Root(m.add)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	if f, ok := errw.(*os.File); ok {
		root.SetErr(f) // a terminal has progress
	}
	err := root.ExecuteContext(ctx)
	r := m.report()
	if err == nil {
		err = errors.Join(json.Unmarshal(out.Bytes(), r), json.Unmarshal(out.Bytes(), &struct {
			Goals *[]cli.Goal `json:"goals"`
		}{&p.goals}))
	}
	if err != nil {
		p.Failed = err.Error()
		return p
	}
	var text bytes.Buffer
	r.Table(&text)
	p.text = text.String()
	if err := o.write(map[string][]byte{m.name + ".json": out.Bytes(), m.name + ".txt": text.Bytes()}); err != nil {
		p.Failed = err.Error()
	}
	p.Files = []string{m.name + ".txt", m.name + ".json", picture}
	return p
}

// goals lists every goal of the project: what the parts decided, and for the others
// why there is nothing.
func (r *AllReport) goals(only []string) (all []cli.Goal) {
	for _, w := range allWanted {
		before := len(all)
		for _, p := range r.Parts {
			for _, g := range p.goals {
				if g.ID == w.id {
					all = append(all, g)
				}
			}
		}
		if len(all) > before {
			continue
		}
		why := w.elsewhere
		switch {
		case why != "":
		case len(only) < len(allNames()):
			why = "not in this run"
		default:
			why = "no figure in this run; try it without --short"
		}
		all = append(all, cli.Goal{ID: w.id, What: w.what}.Decide(why))
	}
	for _, p := range r.Parts {
		for _, g := range p.goals {
			if !slices.ContainsFunc(allWanted, func(w struct{ id, what, elsewhere string }) bool { return w.id == g.ID }) {
				all = append(all, g)
			}
		}
	}
	return all
}

// Text is what the measurement printed.
func (p AllPart) Text() string { return p.text }

// Table ends with the goals.
func (r *AllReport) Table(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.Machine.Text())
	for _, p := range r.Parts {
		where := strings.Join(p.Files, ", ")
		if p.Failed != "" {
			where = "failed: " + p.Failed
		}
		fmt.Fprintf(w, "nfbench %s: %s\n", p.Command, where)
	}
	fmt.Fprintf(w, "in %s, with report.md\n\n", r.Folder)
	cli.WriteGoals(w, r.Goals)
}

// Add adds the commands that have others measure.
func Add(root *cobra.Command, c *cli.Flags) {
	root.AddCommand(newAll(c))
	addPaper(root, c)
}
