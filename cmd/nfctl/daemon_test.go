//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// daemon is the real nfcommsd in its own process.
type daemon struct {
	t       *testing.T
	binary  string
	address string
	args    []string
	cmd     *exec.Cmd
	log     bytes.Buffer
}

// newDaemon builds the daemon and starts it until the test ends.
func newDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "nfctl") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	d := &daemon{t: t, binary: filepath.Join(dir, "nfcommsd"), address: "unix:" + filepath.Join(dir, "s"), args: args}
	build(t, d.binary, "../nfcommsd")
	d.start()
	t.Cleanup(d.kill)
	return d
}

// build builds a program of this tree.
func build(t *testing.T, binary, folder string) {
	t.Helper()
	require.NoError(t, subprocess.Program(t.Context(), binary, folder))
}

// start starts the daemon and waits until it answers.
func (d *daemon) start() {
	d.t.Helper()
	args := []string{"--socket-path", unixPath(d.address), "--roles-admin", fmt.Sprintf("uid:%d", os.Geteuid())}
	d.cmd = exec.Command(d.binary, append(args, d.args...)...)
	d.cmd.Stderr = &d.log
	require.NoError(d.t, d.cmd.Start())
	for begin := time.Now(); nfctl(d.t.Context(), d.t, "health", "--address", d.address).code == exitUnreachable; time.Sleep(10 * time.Millisecond) {
		require.Less(d.t, time.Since(begin), watchdog, "the daemon does not answer")
	}
}

// kill ends the daemon as kill -9 does.
func (d *daemon) kill() {
	_ = d.cmd.Process.Kill() // it may be dead
	_ = d.cmd.Wait()         // killed, as it should be
	if d.t.Failed() {
		d.t.Logf("%s", d.log.String())
	}
}

// pause stops the daemon in the middle of what it does, all threads of it.
func (d *daemon) pause() {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Signal(syscall.SIGSTOP))
	require.Eventually(d.t, func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", d.cmd.Process.Pid))
		for _, name := range threads {
			text, readErr := os.ReadFile(name)
			err = errors.Join(err, readErr)
			if !bytes.Contains(text, []byte(") T ")) {
				return false
			}
		}
		return err == nil && len(threads) > 0
	}, watchdog, time.Millisecond)
}

// TestDaemon uses the daemon, kills it and finds its successor.
func TestDaemon(t *testing.T) {
	d := newDaemon(t)
	do := func(want int, args ...string) result {
		t.Helper()
		r := nfctl(t.Context(), t, append(args, "--address", d.address)...)
		require.Equal(t, want, r.code, "%v: %s%s", args, r.out, r.err)
		return r
	}
	require.Contains(t, do(exitOK, "list").out, "sim0    ready")
	require.Equal(t, "hello\n", do(exitOK, "send", "sim0", "loopback", "hello", "--reply").out)
	require.Contains(t, do(exitOK, "ping", "sim0", "-n", "3", "-i", "0").out, "sim0, simulated: 3 of 3")
	require.Contains(t, do(exitOK, "top", "--once", "-i", "10ms").out, "sim0")
	require.Contains(t, do(exitOK, "doctor").out, "this user is admin")
	require.Contains(t, do(exitOK, "version").out, "server ")
	require.Contains(t, do(exitOK, "reset", "sim0").out, "epoch 2")
	d.pause()
	require.Contains(t, do(exitUnreachable, "send", "sim0", "loopback", "x", "--timeout", "100ms").err, "nobody can tell")
	require.Contains(t, do(exitTimeout, "list", "--timeout", "100ms").err, "deadline")
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGCONT))
	follow := startLive(t, "events", "-f", "--address", d.address)
	follow.until(t, "state is ready")

	waiting := make(chan result, 1)
	go func() {
		waiting <- nfctl(context.WithoutCancel(t.Context()), t, "receive", "sim0", "loopback", "--timeout", "0", "--address", d.address)
	}()
	follow.until(t, "channels/1")
	d.kill()
	r := <-waiting
	require.Equal(t, exitUnreachable, r.code, r.err)
	require.Contains(t, do(exitUnreachable, "list").err, "connection refused")
	require.Contains(t, do(exitUnhealthy, "doctor").out, "the daemon that made it has ended")

	d.start()
	require.Contains(t, do(exitOK, "info", "sim0").out, "epoch:           1\n")
	follow.until(t, "state is ready")
	follow.stop()
	require.Equal(t, exitInterrupted, <-follow.code)
}
