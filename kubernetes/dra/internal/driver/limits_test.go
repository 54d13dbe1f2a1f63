package driver

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// realDevice has containers get the socket of a device process.
type realDevice struct {
	*fakeDaemon
	socket string
}

func (d realDevice) Describe(name string) (cdi.Device, error) {
	return cdi.Describe(name, "shm:"+d.socket, []string{filepath.Dir(d.socket)})
}

// nfsim runs a device process at a socket until the test ends.
func nfsim(t *testing.T, program, socket string) *exec.Cmd {
	cmd := exec.Command(program, "--shm", socket, "--hosts", "4", "--emem", "2MiB")
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it should be
	})
	require.True(t, bufio.NewScanner(pipe).Scan(), "it does not listen")
	return cmd
}

// TestLimitsOfAClaim: the parts of a claim are what a program of its containers finds, opens and no
// more. Another claim has its own. Both go on with the next device process.
func TestLimitsOfAClaim(t *testing.T) {
	dir := short(t)
	program, socket := filepath.Join(dir, "nfsim"), filepath.Join(dir, "d")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/nfsim")
	build.Dir, build.Env = "../../../..", append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	process := nfsim(t, program, socket)
	f := newFake()
	f.set(plugin.Device{Name: "s", Healthy: true, Shares: 2, Info: &nfcommsv1.Device{
		Address: "shm:" + socket, Driver: "shm", Shape: &nfcommsv1.Shape{Channels: 1 << 16, Mailboxes: 8, Islands: 1, Contexts: 64},
	}})
	d := newDriver(t, f, dir)
	d.devices, d.sharer = realDevice{f, socket}, sharer{shmwire.OpenShare, shmwire.CloseShare}
	open := func(name string, channels int64) (*nfcomms.Device, error) {
		p, err := d.admit(t.Context(), claim(name, share("1", channels)))
		require.NoError(t, err)
		one, err := d.offer(t.Context(), uid(name), p, "s")
		require.NoError(t, err)
		require.NoError(t, d.noted.set(uid(name), &p))
		_, address, _ := strings.Cut(one.Edits.Env[0], "=")
		return nfcomms.Open(t.Context(), address)
	}
	a, err := open("a", 40)
	require.NoError(t, err)
	defer a.Close()
	require.Equal(t, 40, a.Info().Channels)
	require.Equal(t, 40, a.Info().Contexts, "half of 64, and eight for services")
	_, err = a.Alloc(129 << 20)
	require.ErrorIs(t, err, nfcomms.ErrNoMemory)
	_, err = open("a", 40)
	require.ErrorIs(t, err, nfcomms.ErrBusy)
	b, err := open("b", 64)
	require.NoError(t, err)
	defer b.Close()
	require.Equal(t, 64, b.Info().Channels)

	require.NoError(t, process.Process.Kill())
	_ = process.Wait()
	nfsim(t, program, socket)
	d.restore(t.Context())
	require.NoError(t, a.Reset(t.Context()))
	require.Equal(t, 40, a.Info().Channels)
	require.NoError(t, back(t, d, uid("a")))
	require.NoError(t, b.Reset(t.Context()))
	_, err = a.Subscribe(t.Context(), nfcomms.Loopback)
	require.ErrorIs(t, err, nfcomms.ErrDeviceLost)
}
