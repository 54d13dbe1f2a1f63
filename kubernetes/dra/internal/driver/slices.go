package driver

import (
	"regexp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// unhealthy is the taint of a device that no further claim gets.
const unhealthy = Name + "/unhealthy"

// sliceMost is the number of devices in a slice: the API server takes no more with taints.
const sliceMost = resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures

// notPlain are the characters of device names that names in a slice do not have.
var notPlain = regexp.MustCompile(`[._]`)

// label returns the name of a device in a slice: nic-0 of "nic_0" and of "nic.0". Such two have one
// variable as well, so that the table offers one of them alone.
func label(name string) string { return notPlain.ReplaceAllString(name, "-") }

// resources returns the slices of a node. There is one without devices, too: the driver runs there.
// plain leaves out devices that are not healthy, for an API server without taints.
func resources(node string, all []source, plain, evict bool) resourceslice.DriverResources {
	devices := make([]resourceapi.Device, 0, len(all))
	for _, s := range all {
		if plain && !s.Healthy {
			continue
		}
		d := s.device()
		if !s.Healthy {
			d.Taints = taints(s.Info.GetState(), evict)
		}
		devices = append(devices, d)
	}
	list := []resourceslice.Slice{{}}
	if len(devices) > 0 {
		list = nil
	}
	for chunk := range slices.Chunk(devices, sliceMost) {
		list = append(list, resourceslice.Slice{Devices: chunk})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: {Slices: list}}}
}

// taints keep claims from a device, and with evict end the pods that have it. The value is the
// daemon's state of the device.
func taints(state nfcommsv1.Device_State, evict bool) []resourceapi.DeviceTaint {
	value := strings.ToLower(strings.TrimPrefix(state.String(), "STATE_"))
	list := []resourceapi.DeviceTaint{{Key: unhealthy, Value: value, Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	if evict {
		list[0].Effect = resourceapi.DeviceTaintEffectNoExecute // it keeps claims away as well
	}
	return list
}

// device returns a device as a slice has it.
func (s *source) device() resourceapi.Device {
	d := resourceapi.Device{Name: label(s.Name), Attributes: s.attributes(), Capacity: make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity)}
	if s.Shares == 0 {
		if most := int64(s.Info.GetShape().GetChannels()); most > 0 {
			d.Capacity[channels] = resourceapi.DeviceCapacity{Value: *quantity(most)}
		}
		return d
	}
	many := true
	d.AllowMultipleAllocations = &many
	for _, c := range s.capacities() {
		d.Capacity[c.name] = c.published()
	}
	return d
}
