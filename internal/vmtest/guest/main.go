//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this is the first process of a test machine and runs nowhere else")
		os.Exit(2)
	}
	done := false
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err) // the console: what else is there
	} else {
		done = true
	}
	powerOff(done)
}

// run does what the plan says. The error is one that could not be reported.
func run() error {
	if err := mountAll(); err != nil {
		return err
	}
	plan, err := readPlan()
	if err != nil {
		return err
	}
	if plan.Shell {
		return shell(plan)
	}
	port, err := openSerial(plan.Results)
	if err != nil {
		return err
	}
	defer port.Close()
	g := &guest{plan: plan, out: wire.NewEncoder(port)}
	return g.run()
}

func readPlan() (*wire.Plan, error) {
	text, err := os.ReadFile(wire.PlanPath)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	plan := new(wire.Plan)
	if err := json.Unmarshal(text, plan); err != nil {
		return nil, fmt.Errorf("decode plan: %w", err)
	}
	return plan, nil
}

// guest carries out one plan.
type guest struct {
	plan *wire.Plan
	out  *wire.Encoder
	err  error // the first frame that could not be sent
	now  int   // the program that runs, or wire.Job
}

func (g *guest) send(f wire.Frame) {
	if err := g.out.Send(f); err != nil && g.err == nil {
		g.err = err
	}
}

// check reports that something was checked, and what was wrong.
func (g *guest) check(name string, err error) {
	f := wire.Frame{Kind: wire.Check, Program: g.now, Name: name}
	if err != nil {
		f.Text = err.Error()
	}
	g.send(f)
}

func (g *guest) run() error {
	g.now = wire.Job
	g.send(wire.Frame{Kind: wire.Hello, Program: wire.Job, Text: release()})
	quietFaults()
	stop, err := g.serveDevice()
	if err != nil {
		return err
	}
	loaded := g.load()
	if len(loaded) == len(g.plan.Modules) {
		for i := range g.plan.Programs {
			g.program(i)
		}
	}
	g.finish(loaded)
	stop()
	g.send(wire.Frame{Kind: wire.End, Program: wire.Job})
	return g.err
}

// load loads the modules and returns those that are.
func (g *guest) load() []wire.Module {
	for i, m := range g.plan.Modules {
		err := loadModule(m)
		g.check("load "+m.Name, err)
		if err != nil {
			return g.plan.Modules[:i]
		}
	}
	return g.plan.Modules
}

// finish takes the modules out again and looks at what is left behind.
func (g *guest) finish(loaded []wire.Module) {
	if g.plan.Kmemleak {
		// Once while the module's names are known, once when all must be gone.
		g.check("kmemleak before unload", scanKmemleak())
	}
	for i := len(loaded) - 1; i >= 0; i-- {
		g.check("unload "+loaded[i].Name, unloadModule(loaded[i].Name))
	}
	if g.plan.Kmemleak {
		g.check("kmemleak", scanKmemleak())
	}
	g.check("pins", checkPins())
	g.check("taint", checkTaint(g.plan.Warns))
	if g.plan.Coverage {
		g.check("coverage", g.sendCoverage())
	}
}

// powerOff ends the machine; QEMU's exit status says whether all was done.
func powerOff(done bool) {
	unix.Sync()
	if done {
		if port, err := os.OpenFile("/dev/port", os.O_WRONLY, 0); err == nil {
			_, _ = port.WriteAt([]byte{exitValue}, exitPort) // ends QEMU, or does nothing
			port.Close()
		}
	}
	// Only an error returns.
	fmt.Fprintln(os.Stderr, "guest: power off:", unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
	for {
		time.Sleep(time.Hour) // the end of the first process would be a panic
	}
}

// QEMU's isa-debug-exit: a write of v ends QEMU with status 2v+1.
const (
	exitPort  = 0xf4
	exitValue = 16
)
