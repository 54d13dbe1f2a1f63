//go:build amd64 || arm64 || riscv64

package kdev

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestOpenSaysWhatIsMissing: each way in which a node does not open has its own
// advice.
func TestOpenSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		err  error
		is   error
		says string
	}{
		{unix.ENOENT, fs.ErrNotExist, "the module nfcomms "},
		{unix.ENXIO, unix.ENXIO, "the module nfcomms "},
		{unix.ENXIO, fs.ErrNotExist, "the module nfcomms "},
		{unix.ENODEV, fs.ErrNotExist, "the module nfcomms "},
		{unix.EACCES, fs.ErrPermission, "join the group nfcomms-dev"},
		{unix.EMFILE, unix.EMFILE, "/dev/nfcomms0: too many open files"},
	} {
		err := openErr("/dev/nfcomms0", c.err)
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
	}
}

func TestNoSuchNode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nfcomms0")
	_, err := bridge.Open(context.Background(), "dev:"+path, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path)
	if _, loaded := os.Stat("/sys/module/nfcomms"); loaded != nil {
		require.ErrorContains(t, err, `"modprobe nfcomms"`)
		require.ErrorContains(t, err, `"make vm"`)
	}
}

// TestOtherFiles: a file, and a device that can be polled but is not ours.
func TestOtherFiles(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for _, path := range []string{plain, "/dev/null", "/dev/ptmx"} {
		_, err := bridge.Open(context.Background(), "dev:"+path, nil)
		require.ErrorIs(t, err, unix.ENOTTY, path)
		require.ErrorIs(t, err, bridge.ErrInvalid, path)
		require.ErrorContains(t, err, "is no device of the module nfcomms", path)
	}
}

// TestNodeErrors: what else keeps a node from opening is the error of the system
// it, with the node's name.
func TestNodeErrors(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	require.NoError(t, os.Symlink("loop", loop))
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	for path, c := range map[string]struct {
		errno syscall.Errno
		most  uint64 // descriptors
	}{
		"/dev/null":          {unix.EMFILE, 0},
		loop:                 {unix.ELOOP, old.Cur},
		dir:                  {unix.EISDIR, old.Cur},
		"/dev/null/nfcomms0": {unix.ENOTDIR, old.Cur},
	} {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: c.most, Max: old.Max}))
		_, err := openNode(path)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
		require.ErrorIs(t, err, c.errno)
		require.ErrorContains(t, err, path)
	}
}
