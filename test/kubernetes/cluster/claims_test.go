package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// cards is a control plane with four cards of one ring of a fabric, nic0 to nic3, and one of another.
type cards struct {
	nfcommsv1.UnimplementedDeviceServiceServer
	nfcommsv1.UnimplementedFabricServiceServer

	mu      sync.Mutex
	sick    string // the name of one
	changed chan struct{}
}

func (d *cards) set(sick string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sick = sick
	close(d.changed)
	d.changed = make(chan struct{})
}

// WatchDevices streams the devices as they are, and again after each change.
func (d *cards) WatchDevices(_ *nfcommsv1.WatchDevicesRequest, stream grpc.ServerStreamingServer[nfcommsv1.WatchDevicesResponse]) error {
	for change := nfcommsv1.Change_CHANGE_SNAPSHOT; ; change = nfcommsv1.Change_CHANGE_UPDATED {
		d.mu.Lock()
		sick, bell := d.sick, d.changed
		d.mu.Unlock()
		for i := range 5 {
			m := &nfcommsv1.Device{Name: fmt.Sprint("devices/nic", i), Address: fmt.Sprint("dev:", i), State: nfcommsv1.Device_STATE_READY, Driver: "dev", Shape: &nfcommsv1.Shape{Channels: 100}}
			if m.GetName() == "devices/"+sick {
				m.State = nfcommsv1.Device_STATE_FAILED
			}
			if err := stream.Send(&nfcommsv1.WatchDevicesResponse{Change: change, Device: m}); err != nil {
				return err
			}
		}
		if change == nfcommsv1.Change_CHANGE_SNAPSHOT {
			if err := stream.Send(&nfcommsv1.WatchDevicesResponse{Change: nfcommsv1.Change_CHANGE_SYNCED}); err != nil {
				return err
			}
		}
		select {
		case <-bell:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// GetFabric returns the node of a card; the last has none.
func (d *cards) GetFabric(_ context.Context, r *nfcommsv1.GetFabricRequest) (*nfcommsv1.GetFabricResponse, error) {
	number := strings.TrimPrefix(r.GetName(), "devices/nic")
	if number == "4" {
		return nil, status.Error(codes.FailedPrecondition, "no fabric")
	}
	return &nfcommsv1.GetFabricResponse{Torus: "4x1x1", Node: number + ".0.0"}, nil
}

// driver returns how to start nfdra for a node, with a folder as the kubelet's and with the rights of
// its pod there, and the client that it has.
func (c *cluster) driver(d *cards, node, dir string) (start func() (kill func()), own *kubernetes.Clientset) {
	l, err := net.Listen("unix", filepath.Join(dir, "d"))
	require.NoError(c, err)
	server := grpc.NewServer()
	nfcommsv1.RegisterDeviceServiceServer(server, d)
	nfcommsv1.RegisterFabricServiceServer(server, d)
	go func() { _ = server.Serve(l) }() // until Stop
	c.Cleanup(server.Stop)
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "nfdra"), "./nfdra")
	build.Dir = "../../../kubernetes/dra"
	out, err := build.CombinedOutput()
	require.NoError(c, err, "%s", out)
	require.NoError(c, os.MkdirAll(filepath.Join(dir, "plugins_registry"), 0o700))
	config := &rest.Config{Host: c.config.Host, BearerToken: c.token(node), TLSClientConfig: c.config.TLSClientConfig}
	own, err = kubernetes.NewForConfig(config)
	require.NoError(c, err)
	access := files{c, dir}.access(config.Host, config.BearerToken)
	return func() func() {
		return program(c.T, filepath.Join(dir, "nfdra"), "--address=unix:"+filepath.Join(dir, "d"), "--node="+node, "--kubelet-dir="+dir,
			"--cdi-dir="+filepath.Join(dir, "cdi"), "--shares=nic4=3", "--kubeconfig="+access)
	}, own
}

// token returns one of the driver's pod on a node.
func (c *cluster) token(node string) (token string) {
	eventually(c.T, func() string {
		pods, err := c.client.CoreV1().Pods("release").List(c.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		require.NoError(c, err)
		for _, p := range pods.Items {
			if p.Spec.ServiceAccountName == "nfcomms" && p.DeletionTimestamp == nil {
				r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}}}
				r, err = c.client.CoreV1().ServiceAccounts("release").CreateToken(c.Context(), "nfcomms", r, metav1.CreateOptions{})
				require.NoError(c, err)
				token = r.Status.Token
				return ""
			}
		}
		return "no pod of the driver on " + node
	})
	return token
}

// claiming adds a pod that claims by a template.
func (c *cluster) claiming(name, template string) {
	c.apply([]byte(`{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `}, spec: {resourceClaims: [{name: d, resourceClaimTemplateName: ` + template + `}],
securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: c,
securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}, resources: {claims: [{name: d}]}}]}}`))
}

// claims has a release of the chart with the driver in place of the plugin. It publishes the devices
// of a node with the rights of its pod. Pods get devices of one ring and parts of one device, and the
// kubelet's own manager has the driver prepare them.
func (c *cluster) claims() {
	c.release("release", "{claims: true, podMonitor: true, fabric: 2x2x1}", 7)
	d := &cards{changed: make(chan struct{}), sick: "nic1"}
	dir, err := os.MkdirTemp("", "nfd") // short enough for sockets
	require.NoError(c, err)
	c.Cleanup(func() { require.NoError(c, os.RemoveAll(dir)) })
	start, own := c.driver(d, "n1", dir)
	kill := start()
	k := &claimer{cluster: c, node: "n1", plugins: filepath.Join(dir, "plugins_registry")}
	state := c.TempDir()
	k.start(state)
	defer func() { k.stop() }()
	c.folder("claims")
	c.claiming("ring", "nfcomms-ring")
	c.claiming("more", "nfcomms-share")
	c.await("nfcomms-claim", 1, 0)
	c.await("ring", 0, 1) // three of the ring are left
	c.await("more", 0, 1) // 64 of 100 channels are taken, and two of three places
	d.set("")
	c.await("ring", 1, 0)
	require.Equal(c, map[string]string{"ring": "n1"}, c.placed("ring"))
	require.Len(c, k.prepare("nfcomms-claim"), 1)
	ring := k.prepare("ring")
	require.Len(c, ring, 4)
	k.unprepare("nfcomms-claim")
	c.await("more", 1, 0)
	c.parts(k, d)

	kill() // and what the driver was is not asked
	start()
	k.unprepare("less")
	more := k.given(k.pod("more"))
	k.start(state)
	require.Equal(c, more, k.given(k.pod("more")))
	k.start(c.TempDir()) // that of a kubelet that lost its state
	require.Equal(c, more, k.prepare("more"))
	require.Equal(c, ring, k.prepare("ring"))
	k.unprepare("more")
	k.unprepare("ring")
	require.Equal(c, "[] false", k.left(dir))
	c.rights(own)
}

// rights are the driver's: it writes slices of its own node, and reads nothing of pods.
func (c *cluster) rights(own *kubernetes.Clientset) {
	_, err := own.ResourceV1().ResourceSlices().Create(c.Context(), &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: resourceapi.ResourceSliceSpec{
		Driver: "nfcomms.dev", NodeName: &[]string{"n2"}[0], Pool: resourceapi.ResourcePool{Name: "n2", ResourceSliceCount: 1},
	}}, metav1.CreateOptions{})
	require.ErrorContains(c, err, "a driver may write the slices of its own node")
	_, err = own.CoreV1().Pods("default").List(c.Context(), metav1.ListOptions{})
	require.ErrorContains(c, err, "forbidden")
}
