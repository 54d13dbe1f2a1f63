package driver

import (
	"strings"
	"time"

	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"

	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
)

// healthEvery is when health is sent without a change: the kubelet takes it as unknown after 30 s.
const healthEvery = 10 * time.Second

// NodeWatchResources sends the health of all devices, at once and with each change. The kubelet writes
// it into the status of pods that have them.
func (d *driver) NodeWatchResources(_ *v1alpha1.NodeWatchResourcesRequest, stream grpc.ServerStreamingServer[v1alpha1.NodeWatchResourcesResponse]) error {
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		list, changed := d.devices.List()
		if err := stream.Send(d.health(list)); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// health returns that of the devices that there are, and of those that claims have and that are gone.
func (d *driver) health(list []plugin.Device) *v1alpha1.NodeWatchResourcesResponse {
	now, seen := time.Now().Unix(), make(map[string]bool)
	answer := new(v1alpha1.NodeWatchResourcesResponse)
	add := func(name string, health v1alpha1.HealthStatus, message string) {
		if !seen[name] {
			seen[name] = true
			answer.Devices = append(answer.Devices, &v1alpha1.DeviceHealth{
				Device: &v1alpha1.DeviceIdentifier{PoolName: d.Node, DeviceName: name}, Health: health, Message: message, LastUpdatedTime: now,
			})
		}
	}
	for _, one := range list {
		state := "the daemon reports " + strings.ToLower(strings.TrimPrefix(one.Info.GetState().String(), "STATE_"))
		switch reason := one.Info.GetFailure().GetMessage(); {
		case one.Healthy:
			add(label(one.Name), v1alpha1.HealthStatus_HEALTHY, "")
		case reason != "":
			add(label(one.Name), v1alpha1.HealthStatus_UNHEALTHY, state+": "+reason)
		default:
			add(label(one.Name), v1alpha1.HealthStatus_UNHEALTHY, state)
		}
	}
	for _, p := range d.noted.all() {
		for _, g := range p.Devices {
			add(g.Device, v1alpha1.HealthStatus_UNHEALTHY, "the device is gone")
		}
	}
	return answer
}
