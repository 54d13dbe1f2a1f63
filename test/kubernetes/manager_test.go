package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/config"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Resources of the plugin.
const (
	whole = v1.ResourceName("nfcomms.dev/device")
	share = v1.ResourceName("nfcomms.dev/share")
)

// watchdog bounds what tests wait for.
const watchdog = time.Minute

// node is a kubelet's device manager and the pods that it has.
type node struct {
	t       *testing.T
	manager *devicemanager.ManagerImpl

	mu   sync.Mutex
	pods map[string]*v1.Pod
}

// newNode starts a device manager. Its log is shown if the test fails.
func newNode(t *testing.T) *node {
	var log bytes.Buffer // the handler locks it
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(&log, nil)))
	n := &node{t: t, pods: make(map[string]*v1.Pod)}
	n.start()
	t.Cleanup(func() {
		n.stop()
		klog.ClearLogger()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return n
}

// start starts a device manager, as a kubelet that starts does.
func (n *node) start() {
	var err error
	n.manager, err = devicemanager.NewManagerImpl(nil, topologymanager.NewFakeManager())
	require.NoError(n.t, err)
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return true })
	require.NoError(n.t, n.manager.Start(klog.Background(), n.GetActivePods, ready, containermap.NewContainerMap(), sets.New[string]()))
}

func (n *node) stop() { require.NoError(n.t, n.manager.Stop(klog.Background())) }

// GetActivePods returns the pods that run.
func (n *node) GetActivePods() (list []*v1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		list = append(list, p)
	}
	return list
}

// await waits until the node can give so many whole devices and shares.
func (n *node) await(devices, shares int64) {
	n.t.Helper()
	var have v1.ResourceList
	for begin := time.Now(); time.Since(begin) < watchdog; time.Sleep(time.Millisecond) {
		_, have, _ = n.manager.GetCapacity()
		d, isWhole := have[whole]
		s, isShare := have[share]
		if isWhole && isShare && d.Value() == devices && s.Value() == shares {
			return
		}
	}
	n.t.Fatalf("the node has %v, want %d devices and %d shares", have, devices, shares)
}

// admit admits a pod whose container asks for one of a resource, and returns what that starts with.
func (n *node) admit(name string, asks v1.ResourceName) (*devicemanager.DeviceRunContainerOptions, error) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: name, UID: types.UID(name)}}
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{asks: resource.MustParse("1")}}}}
	n.mu.Lock()
	n.pods[name] = p
	n.mu.Unlock()
	if err := n.manager.Allocate(p, &p.Spec.Containers[0]); err != nil {
		n.end(name)
		return nil, err
	}
	return n.manager.GetDeviceRunContainerOptions(n.t.Context(), p, &p.Spec.Containers[0])
}

// end ends a pod. The device manager sees it when it admits the next one.
func (n *node) end(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, name)
}

// plugin runs nfplugin until the test ends, when it has to stop without an error.
func plugin(t *testing.T, program string, args ...string) *exec.Cmd {
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
		require.NoError(t, err, "%s", &log)
	})
	return cmd
}

// holds returns how many descriptors, and mappings of files, a process has.
func holds(t *testing.T, p *os.Process) (files, mappings int) {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Pid))
	require.NoError(t, err)
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.Pid))
	require.NoError(t, err)
	return len(list), bytes.Count(maps, []byte(" /")) // of what has a path
}

// TestDeviceManager: the kubelet's own device manager gives devices and shares to 1,000 pods, none
// twice, and nothing of them is left. Devices turn sick and well under it, and a kubelet that starts
// anew knows which are taken.
func TestDeviceManager(t *testing.T) {
	d, dir := newDaemon(t)
	n := newNode(t)
	cmd := plugin(t, build(t, "./kubernetes/nfplugin"), "--address", d.address, "--sockets", dir, "--reset")
	n.await(2, 8)
	one, err := n.admit("one", whole)
	require.NoError(t, err)
	require.Len(t, one.Devices, 1)
	require.Equal(t, "dev:"+one.Devices[0].PathInContainer, one.Envs[0].Value)
	pods := func(first, count int) {
		for i := range count {
			name := fmt.Sprint("pod", first+i)
			if i%2 == 1 {
				o, err := n.admit(name, share)
				require.NoError(t, err, name)
				require.Equal(t, filepath.Join(dir, "s"), o.Mounts[0].HostPath)
			} else {
				o, err := n.admit(name, whole)
				require.NoError(t, err, name)
				require.NotEqual(t, one.Devices, o.Devices, "given twice")
			}
			n.end(name)
		}
	}
	pods(0, 20)
	_, err = n.admit("two", whole)
	require.NoError(t, err)
	_, err = n.admit("third", whole)
	require.Error(t, err)
	n.end("two")
	files, mappings := holds(t, cmd.Process)
	pods(20, 980)
	n.manager.UpdateAllocatedDevices()
	require.Empty(t, n.manager.GetDevices("pod999", "c"))
	nowFiles, nowMappings := holds(t, cmd.Process)
	require.LessOrEqual(t, nowFiles, files)
	require.LessOrEqual(t, nowMappings, mappings)
	require.Equal(t, 502, d.resetCount(), "once for each pod with a device as a whole")
	left, err := os.ReadDir(v1beta1.DevicePluginPath)
	require.NoError(t, err)
	require.Len(t, left, 4, "three sockets and the manager's state: %v", left)

	d.set("nic1", nfcommsv1.Device_STATE_FAILED)
	d.set("sim0", nfcommsv1.Device_STATE_FAILED)
	n.await(1, 0)
	d.set("nic1", nfcommsv1.Device_STATE_READY)
	d.set("sim0", nfcommsv1.Device_STATE_READY)
	n.await(2, 8)
	n.stop()
	n.start()
	n.await(2, 8)
	after, err := n.admit("after", whole)
	require.NoError(t, err)
	require.NotEqual(t, one.Devices, after.Devices, "given twice")
	_, err = n.admit("fourth", whole)
	require.Error(t, err)
}
