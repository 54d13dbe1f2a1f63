package plugin

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// watchdog bounds what tests wait for.
const watchdog = time.Minute

// kubelet is one that has a registry and a device manager as the real one has: it counts what is
// taken, and asks the plugin in the same order.
type kubelet struct {
	v1beta1.UnimplementedRegistrationServer
	t      *testing.T
	folder string
	server *grpc.Server
	ctx    context.Context
	stop   context.CancelFunc
	calls  sync.WaitGroup

	mu        sync.Mutex
	refuse    error // of Register
	resources map[string]*endpoint
	changed   chan struct{}
	taken     map[string]string // pod of each "resource id"; survives the kubelet, as its checkpoint
}

// endpoint is a plugin that registered.
type endpoint struct {
	conn    *grpc.ClientConn
	client  v1beta1.DevicePluginClient
	options *v1beta1.DevicePluginOptions
	health  map[string]string
	near    map[string]*v1beta1.TopologyInfo
	lists   int
	gone    bool // its stream ended
}

// newKubelet starts one. before is the one that it follows, whose pods go on.
func newKubelet(t *testing.T, folder string, before *kubelet) *kubelet {
	k := &kubelet{t: t, folder: folder, resources: make(map[string]*endpoint), changed: make(chan struct{}), taken: make(map[string]string)}
	if before != nil {
		k.taken = before.taken
	}
	k.ctx, k.stop = context.WithCancel(context.Background())
	l, err := net.Listen("unix", filepath.Join(folder, kubeletSocket))
	require.NoError(t, err)
	k.server = grpc.NewServer(grpc.WaitForHandlers(true)) // they begin calls
	v1beta1.RegisterRegistrationServer(k.server, k)
	go func() { _ = k.server.Serve(l) }()
	t.Cleanup(k.end)
	return k
}

// end stops it, as a kubelet that is stopped does.
func (k *kubelet) end() {
	k.stop()
	k.server.Stop()
	k.calls.Wait()
}

// Register takes a plugin in place of an older one of the resource, and begins to watch it.
func (k *kubelet) Register(_ context.Context, r *v1beta1.RegisterRequest) (*v1beta1.Empty, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuse != nil {
		return nil, k.refuse
	}
	if r.GetVersion() != v1beta1.Version {
		return nil, status.Error(codes.Unknown, "requested API version is not supported")
	}
	conn, err := grpc.NewClient("unix:"+filepath.Join(k.folder, r.GetEndpoint()), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	e := &endpoint{conn: conn, client: v1beta1.NewDevicePluginClient(conn), options: r.GetOptions()}
	k.resources[r.GetResourceName()] = e
	k.calls.Go(func() {
		k.watch(e)
		_ = conn.Close()
	})
	return &v1beta1.Empty{}, nil
}

func (k *kubelet) watch(e *endpoint) {
	stream, err := e.client.ListAndWatch(k.ctx, &v1beta1.Empty{}, grpc.WaitForReady(true))
	for err == nil {
		var list *v1beta1.ListAndWatchResponse
		if list, err = stream.Recv(); err == nil {
			k.update(func() {
				e.health, e.near = make(map[string]string), make(map[string]*v1beta1.TopologyInfo)
				e.lists++
				for _, d := range list.GetDevices() {
					e.health[d.GetID()], e.near[d.GetID()] = d.GetHealth(), d.GetTopology()
				}
			})
		}
	}
	k.update(func() { e.gone = true })
}

func (k *kubelet) update(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	close(k.changed)
	k.changed = make(chan struct{})
}

// await waits until the kubelet knows something.
func (k *kubelet) await(what string, is func() bool) {
	k.t.Helper()
	late := time.After(watchdog)
	for {
		k.mu.Lock()
		done, bell := is(), k.changed
		k.mu.Unlock()
		if done {
			return
		}
		select {
		case <-bell:
		case <-late:
			k.t.Fatalf("not in time: %s", what)
		}
	}
}

// endpoint returns the plugin that registered a resource last. Its client and options do not change.
func (k *kubelet) endpoint(resource string) *endpoint {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.resources[resource]
}

// listsOf counts the lists of a plugin.
func (k *kubelet) listsOf(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.resources[resource].lists
}

// devices waits until a resource has these ids, healthy or not: "sim0", "!sim1".
func (k *kubelet) devices(resource string, want ...string) {
	k.t.Helper()
	k.await(fmt.Sprint(resource, " is ", want), func() bool {
		e := k.resources[resource]
		if e == nil || e.gone || e.lists == 0 {
			return false
		}
		var have []string
		for id, health := range e.health {
			if health != v1beta1.Healthy {
				id = "!" + id
			}
			have = append(have, id)
		}
		slices.Sort(have)
		slices.Sort(want)
		return slices.Equal(have, want)
	})
}

// admit gives a pod devices, as the kubelet does when it admits one: those that are healthy and not
// taken, as the plugin prefers them.
func (k *kubelet) admit(pod, resource string, count int) ([]string, *v1beta1.ContainerAllocateResponse, error) {
	k.mu.Lock()
	e := k.resources[resource]
	var free []string
	for id, health := range e.health {
		if health == v1beta1.Healthy && k.taken[resource+" "+id] == "" {
			free = append(free, id)
		}
	}
	k.mu.Unlock()
	slices.Sort(free)
	if len(free) < count {
		return nil, nil, fmt.Errorf("%d of %s asked for, %d there", count, resource, len(free))
	}
	preferred, err := e.client.GetPreferredAllocation(k.ctx, &v1beta1.PreferredAllocationRequest{ContainerRequests: []*v1beta1.ContainerPreferredAllocationRequest{
		{AvailableDeviceIDs: free, AllocationSize: int32(count)},
	}})
	if err != nil {
		return nil, nil, err
	}
	ids := preferred.GetContainerResponses()[0].GetDeviceIDs()
	require.Len(k.t, ids, count)
	k.mu.Lock()
	for _, id := range ids {
		require.Contains(k.t, free, id, "preferred, and not there")
		require.Empty(k.t, k.taken[resource+" "+id], "given twice")
		k.taken[resource+" "+id] = pod
	}
	k.mu.Unlock()
	answer, err := e.client.Allocate(k.ctx, &v1beta1.AllocateRequest{ContainerRequests: []*v1beta1.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err != nil {
		k.release(pod)
		return nil, nil, err
	}
	return ids, answer.GetContainerResponses()[0], nil
}

// start is what the kubelet asks before each start of a container.
func (k *kubelet) start(resource string, ids []string) error {
	e := k.endpoint(resource)
	if !e.options.GetPreStartRequired() {
		return nil
	}
	_, err := e.client.PreStartContainer(k.ctx, &v1beta1.PreStartContainerRequest{DevicesIds: ids})
	return err
}

// release ends a pod. The plugin is not told.
func (k *kubelet) release(pod string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, of := range k.taken {
		if of == pod {
			delete(k.taken, id)
		}
	}
}
