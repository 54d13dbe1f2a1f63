package plugin

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/podresources/v1"
)

// lister is a kubelet's list of pods.
type lister struct {
	v1.UnimplementedPodResourcesListerServer
	pods []*v1.PodResources
}

func (l *lister) List(context.Context, *v1.ListPodResourcesRequest) (*v1.ListPodResourcesResponse, error) {
	return &v1.ListPodResourcesResponse{PodResources: l.pods}, nil
}

// scrape returns the values of all series, as "container of namespace/pod: device resource".
func scrape(t *testing.T, p *Pods) (up float64, series []string) {
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(p))
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "nfcomms_pod_resources_up" {
				up = m.GetGauge().GetValue()
				continue
			}
			require.Equal(t, "nfcomms_pod_device_info", f.GetName())
			require.EqualValues(t, 1, m.GetGauge().GetValue())
			var labels []string
			for _, l := range m.GetLabel() { // in the order of their names
				labels = append(labels, l.GetValue())
			}
			series = append(series, strings.Join(labels, " "))
		}
	}
	return up, series
}

// TestPods: each container with a device is a series, whatever else it has and however many shares.
// A kubelet that is not there is one line, and is found when it comes.
func TestPods(t *testing.T) {
	var log bytes.Buffer
	socket := filepath.Join(short(t), "k")
	p, err := NewPods(socket, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	for range 2 {
		up, series := scrape(t, p)
		require.Zero(t, up)
		require.Empty(t, series)
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "%s", &log)

	devices := func(resource string, ids ...string) *v1.ContainerDevices {
		return &v1.ContainerDevices{ResourceName: resource, DeviceIds: ids}
	}
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	s := grpc.NewServer()
	v1.RegisterPodResourcesListerServer(s, &lister{pods: []*v1.PodResources{
		{Namespace: "a", Name: "p", Containers: []*v1.ContainerResources{
			{Name: "c", Devices: []*v1.ContainerDevices{devices(ResourceDevice, "nic0"), devices(ResourceShare, "s:0", "s:3"), devices("x/y", "z")}},
			{Name: "d", Devices: []*v1.ContainerDevices{devices(ResourceShare, "s:1"), devices(ResourceShare, "s:2")}}, // one by NUMA node
		}},
		{Namespace: "b", Name: "p", Containers: []*v1.ContainerResources{{Name: "c"}}},
	}})
	go func() { _ = s.Serve(l) }() // until Stop
	t.Cleanup(s.Stop)
	require.Eventually(t, func() bool {
		up, _ := scrape(t, p)
		return up == 1
	}, watchdog, retryFirst)
	_, series := scrape(t, p)
	require.Equal(t, []string{"c nic0 a p nfcomms.dev/device", "c s a p nfcomms.dev/share", "d s a p nfcomms.dev/share"}, series)
	require.Contains(t, log.String(), "the kubelet does not list the devices of pods")
}

// TestPodsAreDocumented: the page has a row for each metric.
func TestPodsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/kubernetes.md")
	require.NoError(t, err)
	parts := regexp.MustCompile(`fqName: "(.*?)", help: "(.*?)",.*variableLabels: \{(.*?)\}`)
	for _, d := range []*prometheus.Desc{podInfo, podUp} {
		m := parts.FindStringSubmatch(d.String())
		require.NotNil(t, m, d)
		labels := strings.TrimSuffix(" "+strings.ReplaceAll(m[3], ",", ", "), " ")
		require.Contains(t, string(page), "| `"+m[1]+"` | gauge |"+labels+" | "+m[2]+" |")
	}
}
