package plugin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// residue returns how many bytes that a tenant before wrote a fresh block of device memory has, and
// leaves as many.
func residue(t *testing.T, dev *nfcomms.Device, image []byte) (left uint64) {
	name, err := dev.Load(t.Context(), image)
	require.NoError(t, err)
	p, err := dev.Start(t.Context(), nfcomms.Program{Name: name, Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(t.Context(), p.First)
	require.NoError(t, err)
	defer func() { _ = ch.Close() }() // a reset may have ended it
	buf := make([]byte, nfcomms.MessageSize)
	_, err = ch.Receive(t.Context(), buf)
	require.NoError(t, err)
	return binary.LittleEndian.Uint64(buf)
}

func image(t *testing.T) []byte {
	image, err := program.Build(t.Context(), os.DirFS("testdata/residue"), program.Options{})
	require.NoError(t, err)
	return image
}

// realDaemon serves a control plane at a path.
func realDaemon(t *testing.T) (*control.Server, string) {
	path := filepath.Join(short(t), "d")
	srv := control.New(control.Options{ProbeTimeout: watchdog})
	d := &daemon{path: path}
	d.serve(t, func(s *grpc.Server) { srv.Register(s) })
	t.Cleanup(func() {
		require.NoError(t, srv.Shutdown(context.Background()))
		d.server.Stop()
	})
	return srv, path
}

// TestNothingIsLeft: memory that one container's programs wrote, another finds without a reset, and
// zeroed with one.
func TestNothingIsLeft(t *testing.T) {
	srv, path := realDaemon(t)
	dev, err := nfcomms.Open(t.Context(), "sim:?emem=2MiB") // in place of a card
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	require.NoError(t, srv.Attach("nic0", dev))
	folder := short(t)
	k := newKubelet(t, folder, nil)
	run(t, folder, path, func(o *Options) {
		o.Reset = true
		o.describe = func(name, _ string) (cdi.Device, error) { return cdi.Describe(name, "dev:0", nil) }
	})
	k.devices(ResourceDevice, "nic0")
	image := image(t)
	for _, pod := range []string{"a", "b"} {
		ids, _, err := k.admit(pod, ResourceDevice, 1)
		require.NoError(t, err)
		require.NoError(t, k.start(ResourceDevice, ids))
		require.Zero(t, residue(t, dev, image), "%s reads what another wrote", pod)
		require.EqualValues(t, 1<<19, residue(t, dev, image), "the test sees no residue at all")
		k.release(pod)
	}
	k.devices(ResourceDevice, "nic0")
}

// TestSharesOfADevice: containers with a share each open the device that they were given, with
// nothing but their environment. A later one finds no memory of theirs.
func TestSharesOfADevice(t *testing.T) {
	dir := short(t)
	socket := filepath.Join(dir, "sim0", "shm.sock") // a folder of the device's own
	require.NoError(t, os.Mkdir(filepath.Dir(socket), 0o700))
	nfsim := filepath.Join(dir, "nfsim")
	require.NoError(t, subprocess.Program(t.Context(), nfsim, "github.com/nfcomms/nfcomms/cmd/nfsim"))
	cmd := exec.Command(nfsim, "--shm", socket, "--hosts", "4", "--user-hosts", "4", "--emem", "2MiB")
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it should be
	})
	require.True(t, bufio.NewScanner(pipe).Scan(), "it does not listen")

	srv, path := realDaemon(t)
	require.NoError(t, srv.Open(t.Context(), "sim0", "shm:"+socket))
	folder := short(t)
	k := newKubelet(t, folder, nil)
	run(t, folder, path, func(o *Options) { o.Sockets, o.describe = []string{dir}, nil })
	k.devices(ResourceShare, "sim0:0", "sim0:1", "sim0:2")
	image := image(t)
	open := func(pod string) *nfcomms.Device {
		_, c, err := k.admit(pod, ResourceShare, 1)
		require.NoError(t, err)
		require.Equal(t, []*v1beta1.Mount{{HostPath: filepath.Dir(socket), ContainerPath: filepath.Dir(socket), ReadOnly: true}}, c.GetMounts())
		for variable, address := range maps.All(c.GetEnvs()) {
			t.Setenv(variable, address)
		}
		dev, err := nfcomms.Open(t.Context(), "env:")
		require.NoError(t, err)
		require.Zero(t, residue(t, dev, image), "%s reads what another wrote", pod)
		require.EqualValues(t, 1<<19, residue(t, dev, image), "the test sees no residue at all")
		return dev
	}
	a, b := open("a"), open("b")
	echo(t, b)
	require.NoError(t, a.Close())
	k.release("a")
	c := open("c")
	echo(t, c)
	require.NoError(t, c.Close())
	require.NoError(t, b.Close())
}

// echo sends bulk data to the loopback of a device and takes it back.
func echo(t *testing.T, dev *nfcomms.Device) {
	ch, err := dev.Subscribe(t.Context(), nfcomms.Loopback)
	require.NoError(t, err)
	data := bytes.Repeat([]byte("bulk"), 1<<16)
	require.NoError(t, ch.SendInd(t.Context(), data))
	got := make([]byte, len(data))
	_, err = ch.ReceiveInd(t.Context(), got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
	require.NoError(t, ch.Close())
}
