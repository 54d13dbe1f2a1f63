//go:build unix

package main

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sharedDevice is a device that processes share, in a process of its own.
type sharedDevice struct {
	t      *testing.T
	binary string
	path   string // of its socket
	cmd    *exec.Cmd
}

// newSharedDevice builds one, and does not start it.
func newSharedDevice(t *testing.T) *sharedDevice {
	dir, err := os.MkdirTemp("", "nfsim") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o777))
	d := &sharedDevice{t: t, binary: filepath.Join(dir, "nfsim"), path: filepath.Join(dir, "s")}
	build(t, d.binary, "../nfsim")
	t.Cleanup(d.kill)
	return d
}

// start starts it, as another user if one is given, and waits until it listens.
func (d *sharedDevice) start(as *syscall.Credential, more ...string) {
	d.t.Helper()
	d.cmd = exec.Command(d.binary, append([]string{"--shm", d.path}, more...)...)
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	out, err := d.cmd.StdoutPipe()
	require.NoError(d.t, err)
	require.NoError(d.t, d.cmd.Start())
	require.True(d.t, bufio.NewScanner(out).Scan(), "it does not listen")
}

func (d *sharedDevice) kill() {
	if d.cmd != nil && d.cmd.ProcessState == nil {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait() // killed, as it should be
	}
}

// TestSharedDevice uses a device of another process without a server; what is wrong with
// its socket is a sentence.
func TestSharedDevice(t *testing.T) {
	d := newSharedDevice(t)
	address := "shm:" + d.path
	do := func(want int, args ...string) result {
		t.Helper()
		r := nfctl(t.Context(), t, append(args, "--device", address)...)
		require.Equal(t, want, r.code, "%v: %s%s", args, r.out, r.err)
		return r
	}
	require.Contains(t, do(exitDevice, "list").err, `no device process: start one with "nfsim --shm `)
	d.start(nil)
	require.Contains(t, do(exitOK, "list").out, "local   ready")
	require.Equal(t, "hello\n", do(exitOK, "send", "local", "loopback", "hello", "--reply").out)
	require.Contains(t, do(exitOK, "ping", "-n", "3", "-i", "0").out, "local, simulated: 3 of 3")
	require.Contains(t, do(exitOK, "reset", "local").out, "epoch 2")
	d.kill()
	require.Contains(t, do(exitDevice, "ping").err, "the device process of this socket has gone")

	if os.Geteuid() == 0 {
		require.NoError(t, os.Remove(d.path))
		d.start(&syscall.Credential{Uid: 65534, Gid: 65534})
		require.Contains(t, do(exitDenied, "ping").err, "is run by another user (uid 65534)")
		address += "?user=65534"
		do(exitOK, "ping", "-n", "1")
		d.kill()
	}
	address = "shm:" + d.path + "2"
	l, err := net.Listen("unix", d.path+"2")
	require.NoError(t, err)
	defer l.Close()
	require.Contains(t, do(exitUsage, "ping").err, "this is no socket of a shared device")
}

// TestDaemonSharesADevice: the daemon opens a device that appears later, and uses the
// one that a supervisor starts in the place of one that died.
func TestDaemonSharesADevice(t *testing.T) {
	device := newSharedDevice(t)
	d := newDaemon(t, "--devices", "shared=shm:"+device.path)
	do := func(args ...string) result {
		t.Helper()
		return nfctl(t.Context(), t, append(args, "--address", d.address)...)
	}
	require.Contains(t, do("list").out, "shared  failed")
	device.start(nil)
	works := func() {
		t.Helper()
		for begin := time.Now(); do("send", "shared", "loopback", "hello", "--reply").out != "hello\n"; time.Sleep(10 * time.Millisecond) {
			require.Less(t, time.Since(begin), watchdog, "%s", do("list").out)
		}
	}
	works()
	for range 2 {
		device.kill()
		require.Equal(t, exitDevice, do("ping", "shared", "-n", "1").code)
		require.Equal(t, exitDevice, do("reset", "shared").code, "there is none")
		device.start(nil)
		require.Equal(t, exitOK, do("reset", "shared").code)
		works()
	}
}
