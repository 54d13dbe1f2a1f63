//go:build cgo

package proto_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

func init() {
	hosts = append(hosts, party[talk.Host]{"kernel module", func(t *testing.T) talk.Host { return module(t) }})
	devices = append(devices, party[talk.Device]{"firmware", func(t *testing.T) talk.Device { return firmware(t) }})
}

// module is the core of the kernel module, kmod/core, in a process of its own.
func module(t *testing.T) *talk.Program {
	t.Helper()
	p := build(t, "kmod")
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// firmware is the device firmware behind its test rig, in a process of its own.
func firmware(t *testing.T) *talk.Program {
	t.Helper()
	p := build(t, "firmware", "SANITIZE=")
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// build makes the party of a tree, with make's arguments, as far as it is not built of the same
// sources already, and starts it. Its caller closes it.
func build(t *testing.T, tree string, args ...string) *talk.Program {
	t.Helper()
	folder := sources(t)
	out := filepath.Join(folder, tree, fmt.Sprintf("built%d", len(args)))
	program := filepath.Join(out, "talk")
	args = append([]string{"-s", "-C", filepath.Join(folder, tree, "test"), "BUILD=" + out, program}, args...)
	text, err := exec.Command("make", args...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	p, err := talk.Start(program)
	require.NoError(t, err)
	return p
}

// folder of links to the sources of the programs, which a test may replace by other files.
var folder string

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if folder != "" {
		_ = os.RemoveAll(folder) // a folder that stays is no failure
	}
	os.Exit(code)
}

// sources makes the folder when a test first needs it.
func sources(t *testing.T) string {
	t.Helper()
	if folder != "" {
		return folder
	}
	var err error
	folder, err = os.MkdirTemp("", "proto")
	require.NoError(t, err)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	for _, tree := range []string{"kmod/core", "kmod/test", "firmware"} {
		link(t, filepath.Join(root, tree), filepath.Join(folder, tree))
	}
	return folder
}

// link makes folders like those of a tree, with links to its sources.
func link(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		at := to + strings.TrimPrefix(path, from)
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "build":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(at, 0o777)
		case !slices.Contains([]string{".c", ".h", ""}, filepath.Ext(path)):
			return nil
		}
		return os.Symlink(path, at)
	}))
}
