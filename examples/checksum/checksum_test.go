//go:build linux && cgo

// Package checksum has the two services of README: a server and its client, which find each other by
// a name on a device that they share.
package checksum

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServices runs device, server and client as README says, and the client before the server.
func TestServices(t *testing.T) {
	bin := t.TempDir()
	run(t, ".", "go", "build", "-o", bin, "./server", "./client", "../../cmd/nfsim")
	for _, order := range [][2]string{{"server", "client"}, {"client", "server"}} {
		dir := t.TempDir() // the services' address is relative to it
		device := exec.CommandContext(t.Context(), filepath.Join(bin, "nfsim"), "--shm", "nfcomms.sock")
		device.Dir, device.Stderr = dir, os.Stderr
		out, err := device.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, device.Start())
		first, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, first, "nfcomms.sock", "the device says where it is once it can be opened")
		go io.Copy(io.Discard, out)
		outputs := make(chan string, 2)
		for _, name := range order {
			service := exec.CommandContext(t.Context(), filepath.Join(bin, name))
			service.Dir = dir
			go func() {
				text, err := service.CombinedOutput()
				if err != nil {
					text = append(text, err.Error()...)
				}
				outputs <- string(text)
			}()
		}
		both := <-outputs + <-outputs // the server prints nothing
		require.NoError(t, device.Process.Signal(syscall.SIGTERM))
		require.NoError(t, device.Wait())
		require.Equal(t, "the server received every byte: true\n", both)
	}
}

// TestReadmeShowsThem compares the programs of README with these.
func TestReadmeShowsThem(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	for _, path := range []string{"server/main.go", "client/main.go"} {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		_, program, _ := strings.Cut(string(source), "\npackage main\n")
		require.Contains(t, string(readme), "```go\npackage main\n"+program+"```\n", path)
	}
}

func run(t *testing.T, dir string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
