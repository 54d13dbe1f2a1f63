package driver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Options adjusts a driver. All but Evict are required, and of the plugin's Client, CDI and Log.
type Options struct {
	// Options are those that the device plugin has as well. Folder is not used. CDI is the folder of
	// specifications. Registered is called whenever the kubelet knows the driver, and whenever not.
	plugin.Options
	// API is a connection to the API server.
	API kubernetes.Interface
	// Node is the name of this node.
	Node string
	// Registry is the folder in which the kubelet looks for plugins.
	Registry string
	// State is the driver's own folder, for its socket and its checkpoint.
	State string
	// Memory is how many bytes claims of a shared device may map together.
	Memory int64
	// Evict ends the pods that have a device once it is not healthy.
	Evict bool
}

// daemon has the devices: it is [plugin.Devices], but for tests.
type daemon interface {
	Follow(context.Context)
	Begun() <-chan struct{}
	List() ([]plugin.Device, <-chan struct{})
	Describe(name string) (cdi.Device, error)
	Reset(ctx context.Context, name string) error
	Fabric(ctx context.Context, name string) (*nfcommsv1.GetFabricResponse, error)
}

// driver is one that runs.
type driver struct {
	Options
	v1alpha1.UnimplementedDRAResourceHealthServer
	devices daemon
	noted   *checkpoint
	sharer  sharer
	// sharing guards the shares of claims, which are made anew beside the helper's calls.
	sharing sync.Mutex
	// fail ends the driver.
	fail context.CancelCauseFunc
	// plain is true once the API server dropped what slices have of taints or capacities.
	plain atomic.Bool
}

// placesTime bounds the questions for the places of all devices.
const placesTime = 2 * time.Second

// sources returns the devices with their places in fabrics, and a channel that is closed with the next
// change. A device that does not answer in time has no place.
func (d *driver) sources(ctx context.Context) (all []source, changed <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, placesTime)
	defer cancel()
	list, changed := d.devices.List()
	for _, one := range list {
		s := source{Device: one, memory: d.Memory}
		if place, err := d.devices.Fabric(ctx, one.Name); err == nil {
			s.fabric = place
		}
		all = append(all, s)
	}
	return all, changed
}
