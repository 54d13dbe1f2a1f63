package plugin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestKubeletStartsAnew: at each step of a pod the kubelet may start anew; the plugin registers with
// each, and what the pod has is not given twice.
func TestKubeletStartsAnew(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(2)
	p := run(t, folder, d.path, func(o *Options) { o.Reset = true })
	p.await(t, "no kubelet at", 1) // it is not there yet
	k := newKubelet(t, folder, nil)
	again := func() {
		k.end()
		k = newKubelet(t, folder, k)
		k.devices(ResourceDevice, "nic0", "nic1")
		k.devices(ResourceShare)
	}
	k.devices(ResourceDevice, "nic0", "nic1")
	again() // before a pod
	ids, _, err := k.admit("a", ResourceDevice, 1)
	require.NoError(t, err)
	again() // between its allocation and its start
	require.NoError(t, k.start(ResourceDevice, ids))
	again() // while it runs
	other, _, err := k.admit("b", ResourceDevice, 1)
	require.NoError(t, err)
	require.NotEqual(t, ids, other)
	k.end()
	k.release("a") // while there is no kubelet
	k = newKubelet(t, folder, k)
	k.devices(ResourceDevice, "nic0", "nic1")
	ids2, _, err := k.admit("c", ResourceDevice, 1)
	require.NoError(t, err)
	require.Equal(t, ids, ids2)

	// A kubelet that starts removes the sockets of all plugins, and so does one that did not end.
	e := k.endpoint(ResourceDevice)
	require.NoError(t, os.Remove(filepath.Join(folder, "nfcomms-device.sock")))
	k.await("registered again", func() bool { return k.resources[ResourceDevice] != e })
	k.devices(ResourceDevice, "nic0", "nic1")
	require.NoError(t, p.stop())
	left, err := filepath.Glob(filepath.Join(folder, "nfcomms*"))
	require.NoError(t, err)
	require.Empty(t, left, "sockets stay behind")
}

// await waits until the log has a line so many times.
func (r *running) await(t *testing.T, text string, n int) {
	t.Helper()
	for begin := time.Now(); r.count(text) < n; time.Sleep(time.Millisecond) {
		require.Less(t, time.Since(begin), watchdog, "no line %q", text)
	}
}

// TestOtherAPI: a kubelet that refuses the version is one line, however often it is asked, and
// another one is tried.
func TestOtherAPI(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(1)
	k := newKubelet(t, folder, nil)
	k.mu.Lock()
	k.refuse = status.Error(codes.Unknown, "requested API version is not supported by kubelet. Supported versions are [v2]")
	k.mu.Unlock()
	p := run(t, folder, d.path)
	p.await(t, "Supported versions are [v2]", 1)
	k.mu.Lock()
	k.refuse = nil
	k.mu.Unlock()
	k.devices(ResourceDevice, "nic0")
	require.Equal(t, 1, p.count("Supported versions are [v2]"))
}

// TestTwoPlugins: the second one waits with one line while the first one serves, and takes over when
// that ends, however it does.
func TestTwoPlugins(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(1)
	k := newKubelet(t, folder, nil)
	first := run(t, folder, d.path)
	k.devices(ResourceDevice, "nic0")
	e := k.endpoint(ResourceDevice)
	second := run(t, folder, d.path)
	second.await(t, "another plugin serves", 1)
	require.Same(t, e, k.endpoint(ResourceDevice))
	require.NoError(t, first.stop())
	k.await("the second registers", func() bool { return k.resources[ResourceDevice] != e })
	k.devices(ResourceDevice, "nic0")
	require.Equal(t, 1, second.count("another plugin serves"))

	require.NoError(t, second.stop())
	require.NoError(t, os.WriteFile(filepath.Join(folder, "nfcomms-share.sock"), nil, 0o600))
	third := run(t, folder, d.path)
	third.await(t, "is there and is no socket", 1)
}

// TestFolder: without the kubelet's folder, and after its end, there is nothing to wait for.
func TestFolder(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(1)
	p := run(t, filepath.Join(folder, "none"), d.path)
	p.await(t, "the daemon answers", 1)
	require.ErrorIs(t, p.wait(), os.ErrNotExist)

	inner := filepath.Join(folder, "plugins")
	require.NoError(t, os.Mkdir(inner, 0o700))
	p = run(t, inner, d.path)
	p.await(t, "no kubelet at", 1)
	require.NoError(t, os.Remove(inner))
	require.ErrorIs(t, p.wait(), errGone)
}

// TestSilentDaemon: devices stay as they are while the daemon starts anew, and are sick once it is
// silent for longer than the grace; then they are as the daemon says.
func TestSilentDaemon(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(2)
	k := newKubelet(t, folder, nil)
	patient := run(t, folder, d.path, func(o *Options) { o.Grace = time.Hour })
	k.devices(ResourceDevice, "nic0", "nic1")
	lists := k.listsOf(ResourceDevice)
	d.server.Stop()
	patient.await(t, "the daemon does not answer", 1)
	d.set("nic1", "dev:1", failed) // while nobody watches
	d.begin(t)
	k.devices(ResourceDevice, "nic0", "!nic1")
	require.Equal(t, lists+1, k.listsOf(ResourceDevice))
	require.NoError(t, patient.stop())

	before := k.endpoint(ResourceDevice)
	hasty := run(t, folder, d.path)
	k.await("the next registers", func() bool { return k.resources[ResourceDevice] != before })
	k.devices(ResourceDevice, "nic0", "!nic1")
	d.server.Stop()
	k.devices(ResourceDevice, "!nic0", "!nic1")
	_, _, err := k.admit("a", ResourceDevice, 1)
	require.Error(t, err)
	d.begin(t)
	k.devices(ResourceDevice, "nic0", "!nic1")
	require.Equal(t, 1, hasty.count("the daemon is silent"))
}

// TestNoDaemon: nothing is registered before the daemon answered once, as an empty list would have
// the kubelet forget what pods have.
func TestNoDaemon(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.server.Stop()
	k := newKubelet(t, folder, nil)
	p := run(t, folder, d.path)
	p.await(t, "the daemon is silent", 1)
	require.Empty(t, k.resources)
	d.cards(1)
	d.begin(t)
	k.devices(ResourceDevice, "nic0")
	require.NoError(t, p.stop())
}
