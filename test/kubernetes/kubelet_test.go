package kubernetes

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
)

// kubeletConfig is that of a kubelet without an API server, whose pods are files of a folder, on a
// runtime without containers.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {webhook: {enabled: false}, anonymous: {enabled: true}}
authorization: {mode: AlwaysAllow}
enableServer: false
healthzPort: 0
cgroupsPerQOS: false
cgroupDriver: cgroupfs
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
featureGates: {KubeletInUserNamespace: true}
evictionHard: {memory.available: "1Mi"}
fileCheckFrequency: 1s
`

// aPod asks for a whole device.
const aPod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "test"}, "spec": {
"hostNetwork": true, "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "none", "imagePullPolicy": "IfNotPresent",
"resources": {"limits": {"nfcomms.dev/device": "1"}}}]}}`

// command runs a program until it is killed or the test ends, and returns its output. Its log is shown
// if the test fails.
func command(t *testing.T, path string, args ...string) (out *os.File, kill func()) {
	var log bytes.Buffer
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = out, &log
	require.NoError(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, or once more
	}
	t.Cleanup(func() {
		kill()
		require.NoError(t, out.Close())
		if t.Failed() {
			t.Logf("%s:\n%s", cmd.Args[:2], log.Bytes()[max(0, log.Len()-20000):])
		}
	})
	return out, kill
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(100 * time.Millisecond) {
		require.Less(t, time.Since(begin), watchdog, what)
	}
}

// canGive reports whether the kubelet has devices to give, as it lists them itself.
func canGive(t *testing.T) bool {
	c, conn, err := podresources.GetV1Client("unix:///var/lib/kubelet/pod-resources/kubelet.sock", time.Second, 1<<20)
	if err != nil {
		return false
	}
	defer conn.Close()
	list, err := c.GetAllocatableResources(t.Context(), &podresourcesv1.AllocatableResourcesRequest{})
	if err != nil {
		return false
	}
	for _, d := range list.GetDevices() {
		if d.GetResourceName() == string(whole) {
			return true
		}
	}
	return false
}

// TestKubelet: the kubelet itself starts a container with a device, still knows after a restart that
// the pod has it, and takes it back with the pod.
func TestKubelet(t *testing.T) {
	d, dir := newDaemon(t)
	binary := filepath.Join(programs, "kubelet")
	built, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./kubelet").CombinedOutput()
	require.NoError(t, err, "%s", built)
	socket, pods, config := filepath.Join(dir, "cri"), filepath.Join(dir, "pods"), filepath.Join(dir, "config")
	require.NoError(t, os.Mkdir(pods, 0o700))
	require.NoError(t, os.WriteFile(config, []byte(kubeletConfig+"staticPodPath: "+pods+"\ncontainerRuntimeEndpoint: unix://"+socket+"\n"), 0o600))
	created, _ := command(t, binary, "runtime", socket)
	await(t, "runtime", func() bool {
		c, err := net.Dial("unix", socket)
		return err == nil && c.Close() == nil
	})
	kubelet := []string{"--config=" + config, "--hostname-override=node"}
	_, kill := command(t, binary, kubelet...)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close()) // the plugin listens there
	plugin(t, build(t, "./kubernetes/nfplugin"), "--address", d.address, "--sockets", dir, "--http", address)
	await(t, "devices", func() bool { return canGive(t) })
	file := filepath.Join(pods, "one.json")
	require.NoError(t, os.WriteFile(file, []byte(aPod), 0o600))
	has := func() bool {
		series, up := scrape(t, address)
		return up && len(series) == 1
	}
	await(t, "pod with a device", has)
	series, _ := scrape(t, address)
	require.Regexp(t, `container="c",device="nic[01]",namespace="test",pod="one-node",resource="nfcomms.dev/device"`, series[0])
	var got runtimeapi.ContainerConfig
	await(t, "container", func() bool {
		text, err := os.ReadFile(created.Name())
		require.NoError(t, err)
		return json.NewDecoder(bytes.NewReader(text)).Decode(&got) == nil
	})
	require.Len(t, got.GetDevices(), 1)
	require.Regexp(t, `^/dev/nfcomms[01]$`, got.GetDevices()[0].GetHostPath())

	kill()
	_, _ = command(t, binary, kubelet...)
	await(t, "devices, after a restart", func() bool { return canGive(t) })
	await(t, "the pod, after a restart", has)
	require.NoError(t, os.Remove(file))
	await(t, "no pod", func() bool {
		series, up := scrape(t, address)
		return up && len(series) == 0
	})
}
