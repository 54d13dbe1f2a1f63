//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/vmtest/klog"
	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// lastWords is what a program that ran out of time gets between the signal that
// makes a Go program print its stacks and SIGKILL, and again to die of that. Its last output may take
// as long on the serial line of a slow machine.
const lastWords = 30 * time.Second

// environment is what every program sees.
var environment = []string{
	"PATH=/bin:/sbin:/usr/bin:/usr/sbin", "HOME=/tmp", "TMPDIR=/tmp", "NFC_VM=1",
}

// program runs one program of the plan and checks what it left behind.
func (g *guest) program(i int) {
	p := g.plan.Programs[i]
	g.now = i
	defer func() { g.now = wire.Job }()
	g.check("log", mark(klog.MarkBegin+p.Name))
	g.send(wire.Frame{Kind: wire.Begin, Program: i})
	exit := g.execute(p)
	g.send(exit)
	// Nothing outlives its program: it would disturb the next.
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		g.check("kill", err)
	}
	g.check("pins", checkPins())
	g.check("log", mark(klog.MarkEnd+p.Name))
}

// execute runs a program to its end and returns the frame that says how it was.
func (g *guest) execute(p wire.Program) wire.Frame {
	exit := wire.Frame{Kind: wire.Exit, Program: g.now}
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env = append(append([]string{}, environment...), p.Env...)
	cmd.Dir = "/tmp"
	out := output{g}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = lastWords // for children that keep its output open
	if err := cmd.Start(); err != nil {
		exit.Status, exit.Text = -1, err.Error()
		return exit
	}
	done := make(chan error, 1) // one result, read at most once
	go func() { done <- cmd.Wait() }()
	if err := limit(cmd.Process, done, p.Timeout); err != nil {
		exit.Status, exit.Text = -1, err.Error()
		var status *exec.ExitError
		if errors.As(err, &status) && status.Exited() {
			exit.Status, exit.Text = status.ExitCode(), ""
		}
	}
	return exit
}

// limit waits for the end of a process and hurries it when its time is over.
func limit(p *os.Process, done <-chan error, timeout time.Duration) error {
	select {
	case err := <-done:
		return err
	case <-time.After(timeout):
	}
	late := fmt.Errorf("still running after %v", timeout)
	// The kernel shows where tasks hang: in the console's log.
	_ = os.WriteFile("/proc/sysrq-trigger", []byte("w"), 0)
	for _, sig := range []os.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		_ = p.Signal(sig) // it may have ended just now
		select {
		case err := <-done:
			return fmt.Errorf("%w, then ended: %v", late, err)
		case <-time.After(lastWords):
		}
	}
	return fmt.Errorf("%w, and it does not die", late)
}

// output sends what the running program writes.
type output struct{ g *guest }

func (o output) Write(b []byte) (int, error) {
	o.g.send(wire.Frame{Kind: wire.Output, Program: o.g.now, Data: b})
	return len(b), nil
}

// serveDevice passes on the device commands of programs, until stop is called.
func (g *guest) serveDevice() (stop func(), err error) {
	if err := unix.Mkfifo(wire.DevicePipe, 0o622); err != nil {
		return nil, fmt.Errorf("make %s: %w", wire.DevicePipe, err)
	}
	// Open for writing too, or the pipe would end with the first program's write.
	pipe, err := os.OpenFile(wire.DevicePipe, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open device commands: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			g.send(wire.Frame{Kind: wire.Device, Program: wire.Job, Text: strings.TrimSpace(lines.Text())})
		}
	}()
	return func() {
		pipe.Close()
		<-done
	}, nil
}
