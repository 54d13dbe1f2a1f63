//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// deviceSpec is how to start one device of a job, and where it leaves its traces.
type deviceSpec struct {
	command []string
	socket  string
	log     string // what it writes
	report  string // what it saw, in JSON
	script  string // how it breaks the rules; "": not at all
}

// newDevice describes the i-th device of a boot.
func (b *boot) newDevice(i int, nfsim string) deviceSpec {
	at := filepath.Join(b.folder, fmt.Sprintf("device-%d", i))
	d := deviceSpec{socket: filepath.Join(b.scratch, fmt.Sprintf("%d.sock", i)), log: at + ".log", report: at + ".json"}
	d.command = append([]string{nfsim, "--vfio-user", d.socket, "--exit-when-disconnected", "--report", d.report}, b.job.device...)
	if i < len(b.job.nodes) {
		d.command = append(d.command, b.job.nodes[i].args...)
		d.script = b.job.nodes[i].script
	}
	if d.script != "" {
		d.command = append(d.command, "--script", d.script)
	}
	return d
}

// port is where the machine finds the device. One that dies on purpose answers no more: nobody
// has to wait long for it.
func (d deviceSpec) port() vm.Port {
	p := vm.Port{Socket: d.socket}
	if does(d.script, "die") {
		p.Timeout = 5 * time.Second
	}
	return p
}

// device is one that runs, or has run.
type device struct {
	*vm.Device
	deviceSpec
	out *os.File
	err error // how it ended
}

// startDevices starts all, or none.
func startDevices(ctx context.Context, specs []deviceSpec) ([]*device, error) {
	var all []*device
	for _, spec := range specs {
		d, err := startDevice(ctx, spec)
		if err != nil {
			for _, d := range all {
				err = errors.Join(err, d.stop())
			}
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func startDevice(ctx context.Context, spec deviceSpec) (*device, error) {
	out, err := os.Create(spec.log)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	running, err := vm.StartDevice(ctx, spec.command, spec.socket, out)
	if err != nil {
		out.Close()
		return nil, err
	}
	return &device{Device: running, deviceSpec: spec, out: out}, nil
}

// stop ends the process and returns how it went.
func (d *device) stop() error {
	err := d.Stop()
	if does(d.script, "die") {
		err = dieAsSaid(err)
	}
	return errors.Join(err, d.out.Close())
}

// lost reports whether the process ended before the machine, on purpose.
func (d *device) lost() bool { return d.Killed() || does(d.script, "die") }

// accesses are those to a BAR. Writes in a row to a line of 64 bytes are a burst.
type accesses struct{ Reads, Writes, Bursts uint64 }

// busReport is what a device saw of its bus.
type busReport struct {
	Error     string   `json:"error"`
	Ranges    uint64   `json:"dma_ranges"`
	Faults    uint64   `json:"dma_faults"`
	LastFault string   `json:"last_fault"`
	Struck    uint64   `json:"script_faults"`
	Registers accesses `json:"registers"`
	Mailboxes accesses `json:"mailboxes"`
}

// saw reads what the device saw of the one client that it had.
func (d *device) saw() (busReport, error) {
	text, err := os.ReadFile(d.report)
	if err != nil {
		return busReport{}, fmt.Errorf("read the device's report: %w", err)
	}
	var report struct {
		Clients []busReport `json:"clients"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return busReport{}, fmt.Errorf("read the device's report: %w", err)
	}
	if len(report.Clients) != 1 {
		return busReport{}, fmt.Errorf("the device had %d clients, want 1", len(report.Clients))
	}
	return report.Clients[0], nil
}

// bus reads what the device saw of the guest's memory. Accesses to memory that
// is not mapped are an error unless it reached for that: with an IOMMU such
// reaches must end so, and nothing may be mapped any more when the guest has ended.
func (d *device) bus(iommu, ended bool) error {
	c, err := d.saw()
	if err != nil {
		return err
	}
	switch {
	case c.Error != "":
		return fmt.Errorf("the device cut the machine off: %s", c.Error)
	case d.script != "" && c.Struck == 0:
		return fmt.Errorf("the script %q never struck", d.script)
	case iommu && c.Faults == 0 && does(d.script, reaching...):
		return errors.New("the device reached for memory that is not its own, and no access failed")
	case c.Faults > 0 && !does(d.script, corrupting...) && !does(d.script, leaving...):
		return fmt.Errorf("%d accesses to memory that was not mapped, the last: %s", c.Faults, c.LastFault)
	case c.Ranges > 0 && iommu && ended:
		return fmt.Errorf("%d ranges are still mapped for the device", c.Ranges)
	}
	return nil
}
