//go:build cgo

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

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

// TestSharedOpenWithoutDescriptors: a device process that runs out of descriptors, at whichever step of
// attaching a client, refuses it for that reason, and closes no descriptor but its own.
func TestSharedOpenWithoutDescriptors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	device := startChild(t, "device", "--shm", path)
	ch := port(t, openShared(t, path), "loopback")
	held := func() (names []string) {
		list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", device.Process.Pid))
		require.NoError(t, err)
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	before, refused := held(), 0
	for n := uint64(len(before) + 1); ; n++ {
		limit := unix.Rlimit{Cur: n, Max: 1024}
		require.NoError(t, unix.Prlimit(device.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil))
		dev, err := bridge.Open(t.Context(), "shm:"+path, nil)
		if err == nil {
			require.NoError(t, dev.Close())
			break
		}
		refused++
		require.ErrorIs(t, err, bridge.ErrNoMemory, "%d descriptors", n)
		require.Eventually(t, func() bool { return slices.Equal(before, held()) }, time.Minute, time.Millisecond, "%v, now %v", before, held())
	}
	require.Greater(t, refused, 3)
	require.NoError(t, ch.Send(t.Context(), []byte("it serves on")))
}
