package kubernetes

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
)

// lists are the parts of a kubelet that its server of PodResources asks for a list. Pods have devices
// alone. Methods that other questions need are nil.
type lists struct {
	*node
	podresources.PodsProvider
	podresources.DevicesProvider
	podresources.CPUsProvider
	podresources.MemoryProvider
}

// GetActivePods returns the pods that run.
func (l lists) GetActivePods() []*v1.Pod { return l.node.GetActivePods() }

// UpdateAllocatedDevices frees the devices of pods that ended.
func (l lists) UpdateAllocatedDevices() { l.manager.UpdateAllocatedDevices() }

// GetDevices lists what a container has in the words of the API, as the kubelet does.
func (l lists) GetDevices(pod, container string) (list []*podresourcesv1.ContainerDevices) {
	for resource, devices := range l.manager.GetDevices(pod, container) {
		for id := range devices {
			list = append(list, &podresourcesv1.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}})
		}
	}
	return list
}

// GetCPUs lists nothing.
func (lists) GetCPUs(string, string) []int64 { return nil }

// GetMemory lists nothing.
func (lists) GetMemory(string, string) []*podresourcesv1.ContainerMemory { return nil }

// GetDynamicResources lists nothing.
func (lists) GetDynamicResources(*v1.Pod, *v1.Container) []*podresourcesv1.DynamicResource {
	return nil
}

// scrape returns the series of pods that a plugin answers, and whether it found the kubelet.
func scrape(t *testing.T, address string) (series []string, up bool) {
	r, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	for _, line := range regexp.MustCompile(`(?m)^nfcomms_pod_device_info\{.*\} 1$`).FindAll(text, -1) {
		series = append(series, string(line))
	}
	return series, regexp.MustCompile(`(?m)^nfcomms_pod_resources_up 1$`).Match(text)
}

// TestPodsOfDevices: metrics say which container has which device, as the kubelet's own server of
// PodResources lists it, and say so no more once the pod has ended.
func TestPodsOfDevices(t *testing.T) {
	d, dir := newDaemon(t)
	n := newNode(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close()) // the plugin listens there
	socket := filepath.Join(dir, "pods")
	plugin(t, build(t, "./kubernetes/nfplugin"), "--address", d.address, "--sockets", dir, "--http", address, "--pod-resources", socket)
	n.await(2, 8)
	_, up := scrape(t, address)
	require.False(t, up, "there is no kubelet yet")

	k, err := net.Listen("unix", socket)
	require.NoError(t, err)
	server := grpc.NewServer()
	all := lists{node: n}
	podresourcesv1.RegisterPodResourcesListerServer(server, podresources.NewV1PodResourcesServer(klog.NewContext(t.Context(), klog.Background()),
		podresources.PodResourcesProviders{Pods: all, Devices: all, Cpus: all, Memory: all, DynamicResources: all}))
	go func() { _ = server.Serve(k) }() // until Stop
	t.Cleanup(server.Stop)
	_, err = n.admit("one", whole)
	require.NoError(t, err)
	_, err = n.admit("two", share)
	require.NoError(t, err)
	want := func(want ...string) {
		t.Helper()
		var have []string
		for begin := time.Now(); time.Since(begin) < watchdog; time.Sleep(100 * time.Millisecond) {
			var up bool
			if have, up = scrape(t, address); up && slices.Equal(have, want) {
				return
			}
		}
		require.Equal(t, want, have)
	}
	series := func(device, pod string, resource v1.ResourceName) string {
		return fmt.Sprintf(`nfcomms_pod_device_info{container="c",device=%q,namespace="test",pod=%q,resource=%q} 1`, device, pod, resource)
	}
	nic := "nic0"
	if _, taken := n.manager.GetDevices("one", "c")[string(whole)]["nic1"]; taken {
		nic = "nic1"
	}
	want(series(nic, "one", whole), series("sim0", "two", share))
	n.end("one")
	want(series("sim0", "two", share))
}
