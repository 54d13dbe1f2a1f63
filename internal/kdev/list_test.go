//go:build cgo

package kdev

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

func TestNodesInAFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"nfcomms10", "nfcomms2", "nfcomms0", "nfcomms", "nfcomms-1", "nfcomms01", "nfcommsx", "nfcommsd.sock", "null"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.Equal(t, []int{0, 2, 10}, nodesIn(dir))
	require.Empty(t, nodesIn(filepath.Join(dir, "none")))
}

// TestListSaysHowDevicesAre: each node is described, or has the reason why it cannot be, and
// is left as it was.
func TestListSaysHowDevicesAre(t *testing.T) {
	m := newModule(t)
	dev := opened(t, m)
	ch := target(t, dev, "loopback")
	found := list([]int{0, 3}, func(path string) (kernel, error) {
		if path == "/dev/nfcomms0" {
			return m.open(), nil
		}
		return nil, openErr(path, fs.ErrPermission)
	})
	require.Len(t, found, 2)
	require.NoError(t, found[0].Err)
	require.Equal(t, "dev:0", found[0].Address)
	want := dev.Info()
	require.Equal(t, &want, found[0].Info)
	require.Equal(t, "dev:3", found[1].Address)
	require.ErrorIs(t, found[1].Err, fs.ErrPermission)
	require.Nil(t, found[1].Info)
	require.NoError(t, ch.Send(patience(t), []byte("undisturbed")))

	m.uapi = (uapi.UAPIMajor + 1) << 16
	found = list(nil, func(string) (kernel, error) { return m.open(), nil })
	require.Len(t, found, 1)
	require.ErrorIs(t, found[0].Err, bridge.ErrABI)
	none := errors.New("nothing there")
	found = list(nil, func(string) (kernel, error) { return nil, none })
	require.Equal(t, []bridge.Found{{Address: "dev:0", Driver: "dev", Err: none}}, found, "says what is missing")
}
