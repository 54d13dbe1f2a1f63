package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// tested makes the command line under test.
var tested func() *cobra.Command

// Main runs the tests of some commands of nfbench, as MainOf does.
func Main(m *testing.M, commands ...cli.Adder) {
	MainOf(m, func() *cobra.Command { return cli.Root(commands...) })
}

// MainOf runs the tests of a command line, and plays the other processes: they are this binary
// again, under hidden commands.
func MainOf(m *testing.M, root func() *cobra.Command) {
	tested = root
	hidden := func(c *cobra.Command) bool { return c.Hidden && c.Name() == os.Args[1] }
	if len(os.Args) > 1 && slices.ContainsFunc(root().Commands(), hidden) {
		os.Exit(cli.Run(context.Background(), root(), os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// Run runs a command line and returns what it printed.
func Run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(ctx, tested(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// MustRun runs a command line that must succeed and say nothing on stderr.
func MustRun(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := Run(t.Context(), args...)
	require.Empty(t, errs)
	require.Equal(t, cli.ExitOK, code)
	return out
}

// Decode reads JSON that must have exactly the fields of the report.
func Decode(t *testing.T, text string, report any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(report))
	require.False(t, d.More())
}

// RequireHeader holds the header of a report to what it says of a simulated device.
func RequireHeader(t *testing.T, command string, h cli.Header) {
	t.Helper()
	require.Equal(t, command, h.Command)
	require.Equal(t, "sim", h.Device.Driver)
	require.Equal(t, "simulated device", h.Device.Label)
	require.Positive(t, h.Machine.CPUs)
	require.NotEmpty(t, h.Machine.Go)
	require.NotEmpty(t, h.Machine.Revision)
}

// FakePeer prints what a peer prints, in no time.
const FakePeer = `i=0; while [ $i -lt $4 ]; do echo batch 1000; i=$((i+1)); done; echo cpu 2000; echo wrong 0`

// FakeToolchain is a PATH with compilers that make every program this shell script,
// and an mpirun that runs it.
func FakeToolchain(t *testing.T, peer string) string {
	t.Helper()
	dir := t.TempDir()
	compiler := "#!/bin/sh\nwhile [ $1 != -o ]; do shift; done\n/bin/cat >$2 <<'EOF'\n#!/bin/sh\n" + peer + "\nEOF\n/bin/chmod +x $2\n"
	launcher := "#!/bin/sh\nwhile [ $1 != -np ]; do shift; done\nshift 2\nexec \"$@\"\n"
	for name, text := range map[string]string{"cc": compiler, "mpicc": compiler, "mpirun": launcher} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	return dir
}

// BuildDevice builds the program of a device that processes share.
func BuildDevice(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "nfsim")
	require.NoError(t, subprocess.Program(t.Context(), program, "github.com/nfcomms/nfcomms/cmd/nfsim"))
	return program
}

// StartDevice starts the process of a device that others share, and returns its address.
func StartDevice(t *testing.T, args ...string) string {
	t.Helper()
	address, _ := Serve(t, BuildDevice(t), args...)
	return address
}

// Serve starts such a process of a program that [BuildDevice] built. It is killed when the test ends,
// or before that by kill.
func Serve(t *testing.T, program string, args ...string) (address string, kill func() error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	device := exec.Command(program, append([]string{"--shm", path}, args...)...)
	require.NoError(t, device.Start())
	t.Cleanup(func() {
		_ = device.Process.Kill() // it may have ended
		_ = device.Wait()
	})
	require.Eventually(t, func() bool { // a socket is there before anybody listens
		c, err := net.Dial("unixpacket", path)
		return err == nil && c.Close() == nil
	}, time.Minute, time.Millisecond)
	return "shm:" + path, device.Process.Kill
}
