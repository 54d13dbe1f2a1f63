package driver

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
)

// watchdog bounds what tests wait for.
const watchdog = 30 * time.Second

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begin := time.Now(); !holds(); time.Sleep(time.Millisecond) {
		require.Less(t, time.Since(begin), watchdog, what)
	}
}

// running is a driver that runs.
type running struct {
	mu   sync.Mutex
	log  bytes.Buffer
	stop func() error
}

func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

func (r *running) says(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.log.String(), text)
}

// begin runs a driver in a folder until it is stopped.
func begin(t *testing.T, f *fakeDaemon, api *fake.Clientset, dir string) *running {
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "r"), 0o700))
	r := new(running)
	o := Options{API: api, Node: "n", Registry: filepath.Join(dir, "r"), State: dir, Memory: 256 << 20, Options: plugin.Options{
		CDI: filepath.Join(dir, "cdi"), Log: slog.New(slog.NewTextHandler(r, nil)), Registered: func(bool) {},
	}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o, f, f.sharer()) }()
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		_ = r.stop()
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// kubelet finds the driver in its registry as the kubelet does, and returns a connection to it.
func kubelet(t *testing.T, r *running, dir string) *grpc.ClientConn {
	dial := func(path string) *grpc.ClientConn {
		eventually(t, path, func() bool { _, err := os.Lstat(path); return err == nil })
		conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	registration := registerapi.NewRegistrationClient(dial(filepath.Join(dir, "r", "nfcomms.dev-reg.sock")))
	info, err := registration.GetInfo(t.Context(), &registerapi.InfoRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	require.Equal(t, "DRAPlugin nfcomms.dev", info.GetType()+" "+info.GetName())
	require.Equal(t, []string{"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"}, info.GetSupportedVersions())
	_, err = registration.NotifyRegistrationStatus(t.Context(), &registerapi.RegistrationStatus{Error: "no version of this kubelet"})
	require.ErrorContains(t, err, "no version of this kubelet")
	require.True(t, r.says(`msg="not registered" reason="no version of this kubelet"`), "the kubelet asks again")
	_, err = registration.NotifyRegistrationStatus(t.Context(), &registerapi.RegistrationStatus{PluginRegistered: true})
	require.NoError(t, err)
	require.True(t, r.says("registered with the kubelet"))
	return dial(info.GetEndpoint())
}

// short returns a folder whose path leaves room for the names of sockets.
func short(t *testing.T) string {
	dir, err := os.MkdirTemp("", "nfd")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// taintsOf returns those of the devices in the slices, by device.
func taintsOf(t *testing.T, api *fake.Clientset) map[string]int {
	list, err := api.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	all := make(map[string]int)
	for _, s := range list.Items {
		for _, d := range s.Spec.Devices {
			all[d.Name] = len(d.Taints)
		}
	}
	return all
}

// TestRun: a kubelet registers the driver, which publishes its devices, prepares a claim by the
// kubelet's own calls, and reports a device that turns sick, well and away under it.
func TestRun(t *testing.T) {
	f, dir := newFake(), short(t)
	c := claim("one", whole("nic-0"), share("1", 50))
	api := fake.NewClientset(c, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-of-node"}})
	r := begin(t, f, api, dir)
	conn := kubelet(t, r, dir)
	eventually(t, "slices", func() bool { n, is := taintsOf(t, api)["nic-0"]; return is && n == 0 })
	node := drapb.NewDRAPluginClient(conn)
	got, err := node.NodePrepareResources(t.Context(), &drapb.NodePrepareResourcesRequest{Claims: []*drapb.Claim{{Namespace: "default", Name: "one", Uid: string(c.UID)}}})
	require.NoError(t, err)
	require.Equal(t, []string{"nfcomms.dev/claim=uid-of-one-nic-0"}, got.GetClaims()[string(c.UID)].GetDevices()[0].GetCdiDeviceIds())

	watch, err := v1alpha1.NewDRAResourceHealthClient(conn).NodeWatchResources(t.Context(), &v1alpha1.NodeWatchResourcesRequest{})
	require.NoError(t, err)
	healthy := func(want v1alpha1.HealthStatus, message string) {
		eventually(t, "health", func() bool {
			m, err := watch.Recv()
			require.NoError(t, err)
			for _, h := range m.GetDevices() {
				if h.GetDevice().GetDeviceName() == "nic-0" {
					return h.GetHealth() == want && strings.Contains(h.GetMessage(), message)
				}
			}
			return false
		})
	}
	healthy(v1alpha1.HealthStatus_HEALTHY, "")
	f.restart()
	f.sick("nic_0", true)
	eventually(t, "a share is made again", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.shares) == 1 })
	healthy(v1alpha1.HealthStatus_UNHEALTHY, "the daemon reports")
	eventually(t, "a taint", func() bool { return taintsOf(t, api)["nic-0"] == 1 })
	f.sick("nic_0", false)
	healthy(v1alpha1.HealthStatus_HEALTHY, "")
	eventually(t, "no taint", func() bool { return taintsOf(t, api)["nic-0"] == 0 })
	f.remove("nic_0")
	healthy(v1alpha1.HealthStatus_UNHEALTHY, "gone")
	eventually(t, "gone", func() bool { _, is := taintsOf(t, api)["nic-0"]; return !is })

	other := begin(t, f, api, dir)
	eventually(t, "a second driver waits", func() bool { return other.says("another driver runs") })
	require.NoError(t, r.stop())
	conn = kubelet(t, other, dir)
	back, err := drapb.NewDRAPluginClient(conn).NodeUnprepareResources(t.Context(), &drapb.NodeUnprepareResourcesRequest{Claims: []*drapb.Claim{{Uid: string(c.UID)}}})
	require.NoError(t, err)
	require.Empty(t, back.GetClaims()[string(c.UID)].GetError())
	require.NoError(t, other.stop())
}
