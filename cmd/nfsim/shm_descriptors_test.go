//go:build cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// limitDescriptors leaves a process no descriptor beside those that it has, until restore.
func limitDescriptors(t *testing.T, pid int) (restore func()) {
	t.Helper()
	has := make(map[int]bool)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	for _, f := range open {
		n, err := strconv.Atoi(f.Name())
		require.NoError(t, err)
		has[n] = true
	}
	var old unix.Rlimit
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old))
	free := 0
	for has[free] {
		free++
	}
	require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free), Max: old.Max}, nil))
	return func() { require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil)) }
}

// TestSharedWithoutDescriptors: a device process without a descriptor for a client's memory refuses
// the transfer that needs one, says what it has no more of, and serves on.
func TestSharedWithoutDescriptors(t *testing.T) {
	path, log := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "log")
	file, err := os.Create(log)
	require.NoError(t, err)
	defer file.Close()
	device := startCommand(t, func(c *exec.Cmd) { c.Args, c.Stderr = append(c.Args, "--shm", path), file }, "device")
	require.True(t, device.says.Scan())
	dev := openShared(t, path)
	ch := port(t, dev, "loopback")

	restore := limitDescriptors(t, device.Process.Pid)
	for range 2 {
		err = ch.SendInd(t.Context(), make([]byte, 100_000))
		require.ErrorIs(t, err, bridge.ErrNoMemory)
		require.ErrorContains(t, err, "the device refuses: its process has no descriptors left: out of resources")
	}
	_, err = dev.Alloc(1)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	_, err = dev.Health()
	require.NoError(t, err)
	require.NoError(t, ch.Send(t.Context(), []byte("it serves on")))
	_, err = ch.Receive(t.Context(), make([]byte, abi.PayloadSize))
	require.NoError(t, err)
	restore()
	require.NoError(t, echo(t.Context(), ch, make([]byte, 100_000), 1))

	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(text), `level=WARN msg="client refused: no descriptors left, raise the limit of open files"`)
}
