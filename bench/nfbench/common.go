package main

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

	"github.com/nfcomms/nfcomms/pkg/fabric"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// common holds the flags every command has.
type common struct {
	address string
	node    string // of the fabric, "" for the device itself
	output  string
}

// addNode gives a command the flag --node.
func (c *common) addNode(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.node, "node", "", "measure the device of another node of the fabric, such as 2.1.0")
}

// open opens the device, and that of --node; close ends both.
func (c *common) open(ctx context.Context) (dev *nfcomms.Device, closeAll func() error, err error) {
	near, err := nfcomms.Open(ctx, c.address)
	if err != nil || c.node == "" {
		return near, near.Close, err
	}
	n, err := fabric.ParseNode(c.node)
	if err != nil {
		return nil, nil, errors.Join(usagef("--node: %w", err), near.Close())
	}
	far, err := near.Node(ctx, n.X(), n.Y(), n.Z())
	if err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	return far, near.Close, nil
}

func (c *common) check() error {
	if c.output != "table" && c.output != "json" {
		return usagef("--output %q is neither table nor json", c.output)
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
	// Label distinguishes simulated devices from real ones.
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

// text is the line that every report has of the machine.
func (m Machine) text() string {
	return fmt.Sprintf("host: %s, %d CPUs, %s/%s, %s, load %.2f, revision %s", m.CPU, m.CPUs, m.OS, m.Arch, m.Go, m.Load1, m.Revision)
}

func newHeader(command string, dev *nfcomms.Device) Header {
	info := dev.Info()
	return Header{
		Command: command,
		Device: Device{
			Address: info.Address, Driver: info.Driver, Label: deviceLabel(info.Driver),
			Islands: info.Islands, Window: info.Window,
		},
		Machine: thisMachine(),
	}
}

func thisMachine() Machine {
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: cpuModel(),
		CPUs: runtime.NumCPU(), Go: runtime.Version(), Load1: loadAverage(), Revision: revision(),
	}
}

func deviceLabel(driver string) string {
	switch driver {
	case "sim", "shm":
		return "simulated device"
	default:
		return "device"
	}
}

// report is what a command measured.
type report interface {
	// table writes it for people.
	table(w io.Writer)
}

func (c *common) print(w io.Writer, r report) error {
	if c.output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	r.table(w)
	return nil
}

// measure opens the device, runs fn on it, closes it and prints the report.
func (c *common) measure(cmd *cobra.Command, fn func(context.Context, *nfcomms.Device) (report, error)) error {
	if err := c.check(); err != nil {
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
	return c.print(cmd.OutOrStdout(), r)
}

// shorten does what --short is about, flag by flag, but for those the user set.
func shorten(given func(string) bool, flags map[string]func()) {
	for name, set := range flags {
		if !given(name) {
			set()
		}
	}
}

// progress is a bar on a terminal and nothing in a pipe.
type progress struct{ bar *progressbar.ProgressBar }

func newProgress(w io.Writer, steps int, what string) progress {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return progress{}
	}
	return progress{progressbar.NewOptions(steps, progressbar.OptionSetWriter(f),
		progressbar.OptionSetDescription(what), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(true))}
}

func (p progress) step(what string) {
	if p.bar != nil {
		p.bar.Describe(what)
		_ = p.bar.Add(1) // a bar that cannot be drawn is no reason to stop
	}
}

// at moves the bar to so many steps.
func (p progress) at(steps int, what string) {
	if p.bar != nil {
		p.bar.Describe(what)
		_ = p.bar.Set(steps) // as in step
	}
}

func (p progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
