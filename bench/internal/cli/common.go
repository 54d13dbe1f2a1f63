package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// Flags holds the flags every command has.
type Flags struct {
	Address string
	node    string // of the fabric, "" for the device itself
	output  string
}

// AddNode gives a command the flag --node.
func (c *Flags) AddNode(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.node, "node", "", "measure the device of another node of the fabric, such as 2.1.0")
}

// open opens the device, and that of --node; close ends both.
func (c *Flags) open(ctx context.Context) (dev *nfcomms.Device, closeAll func() error, err error) {
	near, err := nfcomms.Open(ctx, c.Address)
	if err != nil || c.node == "" {
		return near, near.Close, err
	}
	n, err := fabric.Parse(c.node)
	if err != nil {
		return nil, nil, errors.Join(Usagef("--node: %w", err), near.Close())
	}
	far, err := fabric.Device(ctx, near, n)
	if err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	return far, near.Close, nil
}

// Check refuses an output format that is not there.
func (c *Flags) Check() error {
	if c.output != "table" && c.output != "json" {
		return Usagef("--output %q is neither table nor json", c.output)
	}
	return nil
}

// Header opens every report: what was measured, where.
type Header struct {
	Command string  `json:"command"`
	Device  Device  `json:"device"`
	Machine Machine `json:"machine"`
}

// Device is whose figures these are.
type Device struct {
	Address string `json:"address"`
	Driver  string `json:"driver"`
	// Label tells simulated and emulated devices from hardware.
	Label   string `json:"label"`
	Islands int    `json:"islands"`
	Window  int    `json:"window"`
}

// Machine describes the host.
type Machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPU  string `json:"cpu"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	// Load1 is the one-minute load average before the run; -1 if unknown.
	Load1 float64 `json:"load1"`
	// Revision is the commit of the program, with "-dirty" if that was changed;
	// "unknown" if that is not known.
	Revision string `json:"revision"`
}

// Text is the line that every report has of the machine.
func (m Machine) Text() string {
	return fmt.Sprintf("host: %s, %d CPUs, %s/%s, %s, load %.2f, revision %s", m.CPU, m.CPUs, m.OS, m.Arch, m.Go, m.Load1, m.Revision)
}

// NewHeader describes a device and this machine.
func NewHeader(command string, dev *nfcomms.Device) Header {
	info := dev.Info()
	return Header{
		Command: command,
		Device: Device{
			Address: info.Address, Driver: info.Driver, Label: info.Kind() + " device",
			Islands: info.Islands, Window: info.Window,
		},
		Machine: ThisMachine(),
	}
}

// ThisMachine describes this machine.
func ThisMachine() Machine {
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: CPUModel(),
		CPUs: runtime.NumCPU(), Go: runtime.Version(), Load1: loadAverage(), Revision: revision(),
	}
}

// Report is what a command measured.
type Report interface {
	// table writes it for people.
	Table(w io.Writer)
}

// Print writes a report in the format that --output names.
func (c *Flags) Print(w io.Writer, r Report) error {
	if c.output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	r.Table(w)
	return nil
}

// Measure opens the device, runs fn on it, closes it and prints the report.
func (c *Flags) Measure(cmd *cobra.Command, fn func(context.Context, *nfcomms.Device) (Report, error)) error {
	if err := c.Check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	dev, closeAll, err := c.open(ctx)
	if err != nil {
		return err
	}
	r, err := fn(ctx, dev)
	if cerr := closeAll(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return c.Print(cmd.OutOrStdout(), r)
}

// Shorten does what --short is about, flag by flag, but for those the user set.
func Shorten(given func(string) bool, flags map[string]func()) {
	for name, set := range flags {
		if !given(name) {
			set()
		}
	}
}

// Progress is a bar on a terminal and nothing in a pipe.
type Progress struct{ bar *progressbar.ProgressBar }

// NewProgress begins a bar of so many steps; w is where it is drawn if that is a terminal.
func NewProgress(w io.Writer, steps int, what string) Progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return Progress{}
	}
	return Progress{progressbar.NewOptions(steps, progressbar.OptionSetWriter(f),
		progressbar.OptionSetDescription(what), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(true))}
}

// Step moves the bar on, and says what follows.
func (p Progress) Step(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
		_ = p.bar.Add(1) // a bar that cannot be drawn is no reason to stop
	}
}

// At moves the bar to so many steps.
func (p Progress) At(steps int, what string) {
	if p.bar != nil {
		p.bar.Describe(what)
		_ = p.bar.Set(steps) // as in step
	}
}

// Done takes the bar away.
func (p Progress) Done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
