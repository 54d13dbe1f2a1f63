//go:build linux

package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// Device is the process behind a guest's PCI device.
type Device struct {
	p      *process
	output *tail
	killed atomic.Bool
	ending time.Duration // for its end when QEMU has gone
}

// deviceStart bounds how long the device's process may take to listen.
const deviceStart = time.Minute

// StartDevice runs a vfio-user server and returns when it listens at socket. Its output is written
// to log.
func StartDevice(ctx context.Context, command []string, socket string, log io.Writer) (*Device, error) {
	d := &Device{output: &tail{next: log}, ending: patience}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = d.output, d.output
	var err error
	if d.p, err = start("device", cmd, false); err != nil {
		return nil, err
	}
	if err := d.listening(ctx, socket); err != nil {
		d.ending = 0
		return nil, errors.Join(err, d.Stop())
	}
	return d, nil
}

// listening waits until the process accepts a connection, without making one: a
// device takes only one.
func (d *Device) listening(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, deviceStart)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !listens(socket) {
		select {
		case <-tick.C:
		case <-d.p.done:
			return fmt.Errorf("device ended before it listened: %w\n%s", d.p.err, d.output.text)
		case <-ctx.Done():
			return fmt.Errorf("device does not listen at %s: %w", socket, ctx.Err())
		}
	}
	return nil
}

// acceptFlag marks a listening socket in /proc/net/unix.
const acceptFlag = 1 << 16

// listens reports whether somebody listens at a UNIX socket.
func listens(socket string) bool {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return false
	}
	// Num RefCount Protocol Flags Type St Inode Path
	for line := range bytes.Lines(table) {
		fields := bytes.Fields(line)
		if len(fields) != 8 || string(fields[7]) != socket {
			continue
		}
		flags, err := strconv.ParseUint(string(fields[3]), 16, 64)
		if err == nil && flags&acceptFlag != 0 {
			return true
		}
	}
	return false
}

// Command carries out a device command of the guest.
func (d *Device) Command(name string) error {
	switch name {
	case wire.DeviceKill:
		d.killed.Store(true)
		return d.p.signal(syscall.SIGKILL)
	case wire.DeviceStop:
		return d.p.signal(syscall.SIGSTOP)
	case wire.DeviceContinue:
		return d.p.signal(syscall.SIGCONT)
	}
	return fmt.Errorf("device command %q: want %s, %s or %s", name, wire.DeviceKill, wire.DeviceStop, wire.DeviceContinue)
}

// Killed reports whether the guest asked for the process to be killed.
func (d *Device) Killed() bool { return d.killed.Load() }

// Spent returns the processor time that the process took. Valid after Stop.
func (d *Device) Spent() time.Duration { return d.p.spent() }

// Stop lets the process end, which it does when QEMU has gone, or ends it. The
// error says that it ended badly: by itself with another status than 0, or by a
// signal that nobody sent on purpose.
func (d *Device) Stop() error {
	err := d.p.signal(syscall.SIGCONT) // the guest may have stopped it
	if err == nil && !d.p.wait(d.ending) {
		err = d.p.stop()
	} else {
		err = errors.Join(err, d.p.err)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		sig := exit.Sys().(syscall.WaitStatus).Signal()
		if sig == syscall.SIGTERM || sig == syscall.SIGKILL && d.killed.Load() {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("device: %w\n%s", err, d.output.text)
	}
	return nil
}
