package cdi

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

func init() { // once, however often tests run
	bridge.Register("dev", nil)
	bridge.Register("shm", nil)
}

// socket makes a socket of a shared device, and its folders.
func socket(t *testing.T, path string) string {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return path
}

func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("", "cdi") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestDescribe: a card is its node without the daemon's options, a shared device its socket or its
// own folder. The variable has the address that works in the container.
func TestDescribe(t *testing.T) {
	dir := folder(t)
	own, alone := socket(t, dir+"/a/shm.sock"), socket(t, dir+"/b.sock")
	user := ""
	if uid := os.Geteuid(); uid != 0 {
		user = "user=" + strconv.Itoa(uid)
	}
	options := strings.TrimSuffix("?"+user, "?")
	more := strings.TrimSuffix("?node=1.0.0&"+user, "&")
	ro := []string{"bind", "ro", "nosuid", "nodev", "noexec"}
	for _, c := range []struct {
		name, address string
		want          Edits
	}{
		{"nic0", "dev:0", Edits{Env: []string{"NFCOMMS_DEVICE_NIC0=dev:/dev/nfcomms0"}, Nodes: []Node{{"/dev/nfcomms0", "rw"}}}},
		{"nic-1.x", "dev:/dev/nfcomms12?managers=4", Edits{Env: []string{"NFCOMMS_DEVICE_NIC_1_X=dev:/dev/nfcomms12"}, Nodes: []Node{{"/dev/nfcomms12", "rw"}}}},
		{"a", "shm:" + own, Edits{Env: []string{"NFCOMMS_DEVICE_A=shm:" + own + options}, Mounts: []Mount{{dir + "/a", dir + "/a", ro}}}},
		{"b", "shm:" + alone + "?node=1.0.0", Edits{Env: []string{"NFCOMMS_DEVICE_B=shm:" + alone + more}, Mounts: []Mount{{alone, alone, ro}}}},
		{"c", "shm:" + alone + "?user=7", Edits{Env: []string{"NFCOMMS_DEVICE_C=shm:" + alone + "?user=7"}, Mounts: []Mount{{alone, alone, ro}}}},
	} {
		d, err := Describe(c.name, c.address, []string{"/none", dir})
		require.NoError(t, err, c.address)
		require.Equal(t, Device{Name: c.name, Edits: c.want}, d)
		variable, address, _ := strings.Cut(d.Edits.Env[0], "=")
		t.Setenv(variable, address)
		require.NoError(t, bridge.CheckAddress("env:"+d.Name), "env: does not read what is written here")
	}
}

// TestDescribeRefuses: nothing but devices of this project, and sockets where they may lie.
func TestDescribeRefuses(t *testing.T) {
	dir := folder(t)
	at := socket(t, dir+"/in/s")
	socket(t, dir+"/out/s")
	require.NoError(t, os.WriteFile(dir+"/in/file", nil, 0o600))
	require.NoError(t, os.Symlink(dir+"/out", dir+"/in/link"))
	require.NoError(t, os.Symlink(at, dir+"/in/socket"))
	for address, want := range map[string]error{
		"sim:":                         bridge.ErrNotSupported,
		"nothing":                      bridge.ErrScheme,
		"dev:/dev/sda":                 bridge.ErrInvalid,
		"dev:/dev/nfcomms0/../sda":     bridge.ErrInvalid,
		"dev:-1":                       bridge.ErrInvalid,
		"shm:" + dir + "/out/s":        bridge.ErrInvalid,
		"shm:" + dir + "/in/../out/s":  bridge.ErrInvalid,
		"shm:" + dir + "/in/link/s":    bridge.ErrInvalid,
		"shm:" + dir + "/in/socket":    bridge.ErrInvalid,
		"shm:" + dir + "/in/file":      bridge.ErrInvalid,
		"shm:" + dir + "/in":           bridge.ErrInvalid,
		"shm:" + dir + "/in/":          bridge.ErrInvalid,
		"shm:in/s":                     bridge.ErrInvalid,
		"shm:" + dir + "/in/none":      fs.ErrNotExist,
		"shm:" + dir + "/in/none/none": fs.ErrNotExist,
	} {
		_, err := Describe("in", address, []string{dir + "/in"})
		require.ErrorIs(t, err, want, address)
	}
	d, err := Describe("in", "shm:"+at, []string{dir + "/in"})
	require.NoError(t, err)
	require.Equal(t, at, d.Edits.Mounts[0].HostPath, "not the folder of all devices, whatever the name")
}

// TestSpec: a file is replaced as a whole and is gone with the last device; variables do not collide.
func TestSpec(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "cdi")
	none, err := New(nil)
	require.NoError(t, err)
	require.NoError(t, none.Write(dir))
	d, err := Describe("nic0", "dev:0", nil)
	require.NoError(t, err)
	s, err := New([]Device{d})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, s.Write(dir))
		text, err := os.ReadFile(filepath.Join(dir, File))
		require.NoError(t, err)
		require.JSONEq(t, `{"cdiVersion": "0.5.0", "kind": "nfcomms.dev/device", "devices": [{"name": "nic0", "containerEdits": {
			"env": ["NFCOMMS_DEVICE_NIC0=dev:/dev/nfcomms0"], "deviceNodes": [{"path": "/dev/nfcomms0", "permissions": "rw"}]}}]}`, string(text))
	}
	require.NoError(t, none.Write(dir))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Error(t, s.Write("/proc/none"))

	_, err = New([]Device{{Name: "a-b"}, {Name: "a_b"}})
	require.ErrorContains(t, err, `devices "a-b" and "a_b" both have the variable NFCOMMS_DEVICE_A_B`)
}
