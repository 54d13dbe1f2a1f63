package vm

import "fmt"

// Architectures of a Machine.
const (
	AMD64 = "" // as the host's
	ARM64 = "arm64"
)

// board is what a machine has by its architecture.
type board struct {
	machine, cpu string   // of QEMU
	args         []string // more of QEMU
	serial       string   // what the guest calls a serial port, without its number
	params       []string // of its kernel
	done         int      // the exit status of QEMU when the guest came to its end
}

var boards = map[string]board{
	AMD64: {
		machine: "q35", cpu: "max", serial: "ttyS",
		// The guest writes 16 to a port, and QEMU exits with twice that and one.
		args:   []string{"-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"},
		params: []string{"no_timer_check"}, // a loaded host makes the timer look broken
		done:   33,
	},
	// No such port: QEMU exits as it does after any power off, and only the guest's reports
	// show that it reached its end. Features of newer processors are slow in emulation.
	ARM64: {machine: "virt,gic-version=3", cpu: "cortex-a72", serial: "ttyAMA"},
}

// ExitDone is the exit status of QEMU when the guest came to its end.
func (m Machine) ExitDone() int { return boards[m.Arch].done }

// Serial returns the guest's file of a serial port: of 0, its console, or 1, the results.
func (m Machine) Serial(n int) string { return fmt.Sprintf("/dev/%s%d", boards[m.Arch].serial, n) }
