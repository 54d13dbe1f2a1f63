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
	hosts = append(hosts, party[talk.Host]{"kernel module", module})
}

// module is the core of the kernel module, kmod/core, in a process of its own.
func module(t *testing.T) talk.Host {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "talk")
	out, err := exec.Command("make", "-s", "-C", filepath.Join("..", "..", "kmod", "test"), "BUILD="+dir, program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	p, err := talk.Start(program)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}
