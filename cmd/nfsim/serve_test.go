//go:build cgo

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/internal/pci"
)

// TestSocketIsItsOwnersAlone: whatever the umask is, and it is as before afterwards.
func TestSocketIsItsOwnersAlone(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o777} {
		path := filepath.Join(t.TempDir(), "s")
		before := syscall.Umask(mask)
		l, err := listen(path)
		require.Equal(t, mask, syscall.Umask(before))
		require.NoError(t, err)
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.ModeSocket|0o600, st.Mode())
		require.NoError(t, l.Close())
	}
}

func TestBadInput(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--log-format", "xml"}, `--log-format "xml" is neither text nor json`},
		{[]string{"--vectors", "0"}, "0 interrupt vectors: want 1..17"},
		{[]string{"--vectors", "18"}, "18 interrupt vectors: want 1..17"},
		{[]string{"--bar2", "5KiB"}, "option bar2=5KiB: invalid argument: want a size, 4KiB..16GiB, a power of two"},
		{[]string{"--bar2", "much"}, "bar2=much: invalid argument: want a size"},
		{[]string{"--islands", "two"}, "islands=two: invalid argument: want a count, 1..16"},
		{[]string{"--islands", "3"}, "options managers=8, islands=3: invalid argument"},
		{[]string{"--beat", "often"}, "beat=often: invalid argument: want a duration"},
		{[]string{"--beat", "500us"}, "beat=500us: invalid argument: want a duration, 1ms..1m0s, a multiple of 1ms"},
		{[]string{"--stack", "4GiB"}, "stack=4GiB: invalid argument: want a size, 16KiB..16MiB"},
		{[]string{"--contexts", "1024"}, "contexts=1024: invalid argument: want a count, 1..64"},
		{[]string{"--pci-version", "2"}, `"2": want MAJOR.MINOR, from 1.0`},
		{[]string{"--abi-version", "0.1"}, `"0.1": want MAJOR.MINOR, from 1.0`},
		{[]string{"--abi-version", "65536.0"}, `"65536.0": want MAJOR.MINOR, from 1.0`},
		{[]string{"--script", "wrong"}, `--script: fault "wrong": kind "wrong" is not one of`},
		{[]string{"--script", "count@0"}, `"0": want a number from 1`},
		{[]string{"--script", " , "}, "no fault in"},
		{[]string{"--script", "irq-drop:ack"}, `irq-drop does not look at messages: no "ack"`},
		{[]string{"--script", "early:ready"}, `early does not look at "ready"`},
	} {
		code, stdout, stderr := nfsim(append(c.args, "--vfio-user", socket)...)
		require.Equal(t, exitUsage, code, c.args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.says)
	}
	_, err := os.Stat(socket)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// process is nfsim on a goroutine.
type process struct {
	cancel context.CancelFunc
	code   chan int
	log    strings.Builder
}

// start runs nfsim until it listens.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{cancel: cancel, code: make(chan int, 1)}
	out, in := io.Pipe()
	go func() {
		p.code <- run(ctx, args, in, &p.log)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil { // it ended
		code := <-p.code
		cancel()
		require.FailNow(t, "does not listen", "exit code %d: %s", code, p.log.String())
	}
	require.Contains(t, line, "listening ")
	return p
}

// connect attaches a client that boots the device.
func connect(t *testing.T, socket string) *vfioclient.Client {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	c := vfioclient.New(conn, nil)
	_, err = c.Version()
	require.NoError(t, err)
	require.NoError(t, c.Write32(pci.BarRegisters, pci.RegControl, pci.ControlReset))
	require.NoError(t, c.MapDMA(0, 1<<20, 0, vfioclient.Readable, -1))
	return c
}

// TestVersions: a device claims the versions of its flags.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		args     []string
		pci, abi uint32
	}{
		{nil, pci.Major<<16 | pci.Minor, abi.Major<<16 | abi.Minor},
		{[]string{"--pci-version=2.0"}, 2 << 16, abi.Major<<16 | abi.Minor},
		{[]string{"--abi-version=9.1"}, pci.Major<<16 | pci.Minor, 9<<16 | 1},
	} {
		socket := filepath.Join(t.TempDir(), "s")
		p := start(t, append(c.args, "--vfio-user", socket)...)
		client := connect(t, socket)
		for register, want := range map[uint64]uint32{pci.RegVersion: c.pci, pci.RegABI: c.abi} {
			got, err := client.Read32(pci.BarRegisters, register)
			require.NoError(t, err)
			require.Equal(t, want, got, "%v register %#x", c.args, register)
		}
		require.NoError(t, client.Close())
		p.cancel()
		require.Zero(t, <-p.code)
	}
}

// TestServe serves two clients in turn, reports on both, and ends by a signal
// while the second is there. The socket is removed then.
func TestServe(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0)) // which does not count
	dir := t.TempDir()
	socket, path := filepath.Join(dir, "nfsim.sock"), filepath.Join(dir, "report.json")
	p := start(t, "--vfio-user", socket, "--report", path, "--log-format", "json", "--spin", "0")
	info, err := os.Stat(socket)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
	code, _, stderr := nfsim("--vfio-user", socket)
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "another process listens there")
	first := connect(t, socket)
	require.NoError(t, first.Close())
	second := connect(t, socket)
	p.cancel()
	require.Equal(t, exitOK, <-p.code, p.log.String())
	require.NoError(t, second.Close())
	_, err = os.Stat(socket)
	require.ErrorIs(t, err, os.ErrNotExist)
	var r report
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	require.Len(t, r.Clients, 2)
	require.EqualValues(t, 3, r.Clients[0].Messages)
	require.EqualValues(t, 1, r.Clients[0].DMARanges)
	require.EqualValues(t, 0, r.Clients[0].DMAUnmaps)
	require.EqualValues(t, 1, r.Clients[1].DMAUnmaps)
	for line := range strings.Lines(p.log.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
}

// TestServeOnce ends with its client, and replaces a socket that nobody listens
// on.
func TestServeOnce(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nfsim.sock")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	require.NoError(t, err)
	left.SetUnlinkOnClose(false)
	require.NoError(t, left.Close())
	p := start(t, "--vfio-user", socket, "--exit-when-disconnected", "--script", "count@100", "--vectors", "1")
	require.NoError(t, connect(t, socket).Close())
	require.Equal(t, exitOK, <-p.code, p.log.String())
	p.cancel()
}

// TestServeFails says why: a folder that is not there, a file in the way, a
// report that cannot be written.
func TestServeFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for path, says := range map[string]string{
		filepath.Join(dir, "none", "s"): "no such file or directory",
		file:                            "address already in use",
		filepath.Join(dir, strings.Repeat("s", 120)): "invalid argument",
	} {
		code, _, stderr := nfsim("--vfio-user", path)
		require.Equal(t, exitFailed, code, path)
		require.Contains(t, stderr, says)
	}
	_, err := os.Stat(file)
	require.NoError(t, err, "a file that is no socket was removed")
	socket := filepath.Join(dir, "s")
	p := start(t, "--vfio-user", socket, "--report", filepath.Join(dir, "none", "r"))
	defer p.cancel()
	require.NoError(t, connect(t, socket).Close())
	require.Equal(t, exitFailed, <-p.code)
	require.Contains(t, p.log.String(), "no such file or directory")
}
