//go:build cgo

package proto_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/proto/talk"
)

func init() {
	devices = append(devices, party[talk.Device]{"firmware", firmware})
}

// firmware is the device firmware behind its test rig, in a process of its own.
func firmware(t *testing.T) talk.Device {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "talk")
	out, err := exec.Command("make", "-s", "-C", filepath.Join("..", "..", "firmware", "test"), "BUILD="+dir, "SANITIZE=", program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	p, err := talk.Start(program)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}
