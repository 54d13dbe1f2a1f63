//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// shellPrograms are built for the shell besides busybox.
var shellPrograms = []string{"bulk", "nfbench"}

// shellCommand gives the terminal to a guest.
func shellCommand(ctx context.Context, args []string) error {
	j := baseJob("shell")
	j.machine.Console = true
	rest, err := parseMachine("shell", args, &j)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError{fmt.Errorf("shell takes no argument, got %q", rest[0])}
	}
	if j.kernel == "arm64" {
		return usageError{errors.New("the shell is one of this machine's processor")}
	}
	w, err := newWorkshop()
	if err != nil {
		return err
	}
	busybox, err := w.command(ctx, nil, "scripts/vm-busybox.sh")
	if err != nil {
		return err
	}
	j.files = append(j.files, item{name: "/bin/busybox", from: busybox, perm: 0o755})
	var list []program
	for _, name := range shellPrograms {
		list = append(list, programs[name].named(name))
	}
	j.banner = banner(list)
	b, err := w.prepare(ctx, j, list)
	if err != nil {
		return err
	}
	return b.interact(ctx)
}

// banner is what the shell says first.
func banner(list []program) string {
	var b strings.Builder
	b.WriteString("\nA virtual machine with an emulated device; \"exit\" ends it. Programs to try:\n")
	for _, p := range list {
		fmt.Fprintf(&b, "  %s %s\n", p.name, strings.Join(p.args, " "))
	}
	b.WriteString("Also: cat /sys/kernel/debug/nfcomms/*, dmesg, rmmod nfcomms\n\n")
	return b.String()
}

// interact runs the machine on the terminal, which it leaves as it was.
func (b *boot) interact(ctx context.Context) error {
	defer b.close()
	defer keepTerminal()()
	devices, err := startDevices(ctx, b.devices)
	if err != nil {
		return err
	}
	outcome, err := b.machine.Boot(ctx, vm.Events{})
	for _, d := range devices {
		err = errors.Join(err, d.stop())
	}
	if err == nil && outcome.Status != b.machine.ExitDone() {
		err = fmt.Errorf("the machine did not power off: its exit status is %d\n%s", outcome.Status, outcome.Stderr)
	}
	return err
}

// keepTerminal remembers the terminal's settings and returns what restores them:
// QEMU does so itself, unless it is killed.
func keepTerminal() func() {
	fd := int(os.Stdin.Fd())
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return func() {} // no terminal
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETS, old) }
}
