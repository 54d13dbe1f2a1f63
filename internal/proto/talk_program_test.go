//go:build cgo

package proto_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

func init() {
	hosts = append(hosts, party[talk.Host]{"kernel module", func(t *testing.T) talk.Host { return module(t) }})
	devices = append(devices, party[talk.Device]{"firmware", func(t *testing.T) talk.Device { return firmware(t) }})
}

// root is the project's folder.
var root = filepath.Join("..", "..")

// module is the core of the kernel module, kmod/core, in a process of its own.
func module(t *testing.T) *talk.Program {
	t.Helper()
	p := build(t, root, "kmod")
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// firmware is the device firmware behind its test rig, in a process of its own.
func firmware(t *testing.T) *talk.Program {
	t.Helper()
	p := build(t, root, "firmware", "SANITIZE=")
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// build makes the party of a tree below a folder, with make's arguments, and starts it. Its caller
// closes it.
func build(t *testing.T, folder, tree string, args ...string) *talk.Program {
	t.Helper()
	out := t.TempDir()
	program := filepath.Join(out, "talk")
	args = append([]string{"-s", "-C", filepath.Join(folder, tree, "test"), "BUILD=" + out, program}, args...)
	text, err := exec.Command("make", args...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	p, err := talk.Start(program)
	require.NoError(t, err)
	return p
}
