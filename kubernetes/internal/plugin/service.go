package plugin

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Resources of a node.
const (
	// ResourceDevice is a device as a whole, for one container.
	ResourceDevice = "nfcomms.dev/device"
	// ResourceShare is one client of a device that several share.
	ResourceShare = "nfcomms.dev/share"
)

// service serves one resource to the kubelet.
type service struct {
	v1beta1.UnimplementedDevicePluginServer
	*plugin
	name   string // of the resource
	shared bool
	over   <-chan struct{} // closed when the server is to stop
}

// options are told to the kubelet when it registers the plugin, and when it asks.
func (s *service) options() *v1beta1.DevicePluginOptions {
	return &v1beta1.DevicePluginOptions{PreStartRequired: s.Reset && !s.shared, GetPreferredAllocationAvailable: true}
}

// GetDevicePluginOptions returns the options.
func (s *service) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return s.options(), nil
}

// offers reports whether a device is of this resource.
func (s *service) offers(o *offer) bool { return (o.shares > 0) == s.shared }

// ListAndWatch sends the list of devices, and again whenever it changes.
func (s *service) ListAndWatch(_ *v1beta1.Empty, stream grpc.ServerStreamingServer[v1beta1.ListAndWatchResponse]) error {
	var sent *v1beta1.ListAndWatchResponse
	for {
		offers, bell := s.table.list(s.offers)
		if now := listOf(offers); sent == nil || !proto.Equal(now, sent) {
			if err := stream.Send(now); err != nil {
				return err
			}
			sent = now
		}
		select {
		case <-bell:
		case <-s.over:
			return nil
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func listOf(offers []*offer) *v1beta1.ListAndWatchResponse {
	list := new(v1beta1.ListAndWatchResponse)
	for _, o := range offers {
		health := v1beta1.Unhealthy
		if o.healthy {
			health = v1beta1.Healthy
		}
		var near *v1beta1.TopologyInfo
		if o.numa >= 0 {
			near = &v1beta1.TopologyInfo{Nodes: []*v1beta1.NUMANode{{ID: o.numa}}}
		}
		for _, id := range o.ids() {
			list.Devices = append(list.Devices, &v1beta1.Device{ID: id, Health: health, Topology: near})
		}
	}
	return list
}

// find returns the devices of ids, in the order of the ids. Each must be of this resource.
func (s *service) find(ids []string) ([]*offer, error) {
	all := make(map[string]*offer)
	offers, _ := s.table.list(s.offers)
	for _, o := range offers {
		for _, id := range o.ids() {
			all[id] = o
		}
	}
	found := make([]*offer, len(ids))
	for i, id := range ids {
		if found[i] = all[id]; found[i] == nil {
			return nil, status.Errorf(codes.NotFound, "%s has no device %q", s.name, id)
		}
	}
	return found, nil
}

// Allocate returns what containers need. An id that two of them would get is an error.
func (s *service) Allocate(_ context.Context, r *v1beta1.AllocateRequest) (*v1beta1.AllocateResponse, error) {
	answer, taken := new(v1beta1.AllocateResponse), make(map[string]bool)
	for _, c := range r.GetContainerRequests() {
		offers, err := s.find(c.GetDevicesIds())
		if err != nil {
			return nil, err
		}
		for i, o := range offers {
			id := c.GetDevicesIds()[i]
			if taken[id] {
				return nil, status.Errorf(codes.InvalidArgument, "device %q is asked for twice", id)
			}
			taken[id] = true
			if !o.healthy {
				return nil, status.Errorf(codes.FailedPrecondition, "device %q is not healthy", id)
			}
		}
		given, err := s.give(offers)
		if err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
		s.Log.Info("given to a container", "resource", s.name, "ids", strings.Join(c.GetDevicesIds(), " "))
	}
	return answer, nil
}

// give describes devices to a container. Several shares of one device are one mount and one name.
func (s *service) give(offers []*offer) (*v1beta1.ContainerAllocateResponse, error) {
	c := &v1beta1.ContainerAllocateResponse{Envs: make(map[string]string)}
	byCDI, one := s.table.byCDI(), make(map[string]*offer)
	for _, o := range offers {
		one[o.name] = o
	}
	mounted := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if byCDI {
			c.CdiDevices = append(c.CdiDevices, &v1beta1.CDIDevice{Name: cdi.Kind + "=" + name})
			continue
		}
		d, err := s.describe(name, one[name].address)
		if err != nil {
			return nil, status.Errorf(codes.FailedPrecondition, "device %q: %v", name, err)
		}
		for _, e := range d.Edits.Env {
			variable, address, _ := strings.Cut(e, "=")
			c.Envs[variable] = address
		}
		for _, n := range d.Edits.Nodes {
			c.Devices = append(c.Devices, &v1beta1.DeviceSpec{HostPath: n.Path, ContainerPath: n.Path, Permissions: n.Permissions})
		}
		for _, m := range d.Edits.Mounts {
			if !mounted[m.HostPath] {
				mounted[m.HostPath] = true
				c.Mounts = append(c.Mounts, &v1beta1.Mount{HostPath: m.HostPath, ContainerPath: m.ContainerPath, ReadOnly: true})
			}
		}
	}
	return c, nil
}

// PreStartContainer resets devices before a container gets them, so that it finds nothing of the one
// before. The container does not start if that fails.
func (s *service) PreStartContainer(ctx context.Context, r *v1beta1.PreStartContainerRequest) (*v1beta1.PreStartContainerResponse, error) {
	offers, err := s.find(r.GetDevicesIds())
	if err != nil {
		return nil, err
	}
	for _, o := range offers {
		if !s.Reset || s.shared {
			break
		}
		if _, err := s.Client.Devices.ResetDevice(ctx, &nfcommsv1.ResetDeviceRequest{Name: control.DeviceName(o.name)}); err != nil {
			s.Log.Error("device cannot be reset: its container does not start", "device", o.name, "reason", err)
			return nil, status.Errorf(codes.FailedPrecondition, "reset device %q: %v", o.name, err)
		}
		s.Log.Info("reset for a container", "device", o.name)
	}
	return &v1beta1.PreStartContainerResponse{}, nil
}

// GetPreferredAllocation picks devices that are near each other, or shares of those used least.
func (s *service) GetPreferredAllocation(ctx context.Context, r *v1beta1.PreferredAllocationRequest) (*v1beta1.PreferredAllocationResponse, error) {
	answer := new(v1beta1.PreferredAllocationResponse)
	for _, c := range r.GetContainerRequests() {
		size, must := int(c.GetAllocationSize()), c.GetMustIncludeDeviceIDs()
		if size < len(must) || size > len(c.GetAvailableDeviceIDs()) {
			return nil, status.Errorf(codes.InvalidArgument, "%d of %d devices, %d of them given: not possible", size, len(c.GetAvailableDeviceIDs()), len(must))
		}
		if _, err := s.find(must); err != nil {
			return nil, err
		}
		offers, err := s.find(c.GetAvailableDeviceIDs())
		if err != nil {
			return nil, err
		}
		ids := spread(c.GetAvailableDeviceIDs(), must, size)
		if !s.shared {
			ids = near(s.places.of(ctx, offers), must, size)
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &v1beta1.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return answer, nil
}
