package driver

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Capacities of a device. Each claim of a shared device takes a part of them.
const (
	clients   resourceapi.QualifiedName = "clients"
	channels  resourceapi.QualifiedName = "channels"
	processes resourceapi.QualifiedName = "processes"
	memory    resourceapi.QualifiedName = "memory"
)

const (
	// MemoryUnit is the memory that a client maps for its first transfer.
	MemoryUnit = 64 << 20
	// channelsLeast are the channels of a client: 16 are the device's own.
	channelsLeast = 32
)

// parts are what a claim takes of a shared device; 0 for a whole device.
type parts struct {
	Clients  int64 `json:"clients,omitempty"`
	Channels int64 `json:"channels,omitempty"`
	// Processes are those on each island, Memory is what clients may map, in bytes.
	Processes int64 `json:"processes,omitempty"`
	Memory    int64 `json:"memory,omitempty"`
}

// of returns the part of a capacity.
func (p *parts) of(name resourceapi.QualifiedName) *int64 {
	return map[resourceapi.QualifiedName]*int64{clients: &p.Clients, channels: &p.Channels, processes: &p.Processes, memory: &p.Memory}[name]
}

// capacity is one of a shared device.
type capacity struct {
	name resourceapi.QualifiedName
	all  int64
	// usual is the part of a claim that names none, least the smallest; all parts are multiples of unit.
	usual, least, unit int64
}

// limited reports whether the device enforces the parts: a shared device process that is no node of a
// fabric. Claims of others agree on channels.
func (s *source) limited() bool {
	return s.Shares > 0 && s.fabric == nil && strings.HasPrefix(s.Info.GetAddress(), "shm:")
}

// capacities returns those of a shared device, as far as the daemon knows them.
func (s *source) capacities() []capacity {
	shares, shape := int64(s.Shares), s.Info.GetShape()
	list := []capacity{{clients, shares, 1, 1, 1}}
	if shape.GetChannels() == 0 {
		return list
	}
	if !s.limited() {
		return append(list, equal(channels, int64(shape.GetChannels()), shares, 1, 1))
	}
	least := max(channelsLeast, int64(shape.GetMailboxes()))
	return append(list, equal(channels, int64(shape.GetChannels()), shares, least, 1),
		equal(processes, int64(shape.GetContexts()/max(1, shape.GetIslands())), shares, 1, 1),
		equal(memory, s.memory, shares, MemoryUnit, MemoryUnit))
}

// equal is a capacity of which each share usually is an equal part.
func equal(name resourceapi.QualifiedName, all, shares, least, unit int64) capacity {
	all, least = all/unit*unit, min(all, least)
	return capacity{name, all, max(least, all/unit/shares*unit), least, unit}
}

// published is a capacity as a slice has it.
func (c capacity) published() resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{Value: *quantity(c.all), RequestPolicy: &resourceapi.CapacityRequestPolicy{
		Default: quantity(c.usual), ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: quantity(c.least), Max: quantity(c.all), Step: quantity(c.unit)},
	}}
}

func quantity(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }

// taken returns the parts that a result has; a usual one where it names none.
func (s *source) taken(r resourceapi.DeviceRequestAllocationResult) (p parts) {
	for _, c := range s.capacities() {
		*p.of(c.name) = c.usual
		for _, key := range []resourceapi.QualifiedName{c.name, Name + "/" + c.name} {
			if q, is := r.ConsumedCapacity[key]; is {
				*p.of(c.name) = q.Value()
			}
		}
	}
	return p
}

// room reports whether a device has room for the parts of claims together.
func (s *source) room(all []parts, others string) error {
	var exceeded []string
	for _, c := range s.capacities() {
		sum := int64(0)
		for i := range all {
			sum += max(c.least, *all[i].of(c.name))
		}
		if sum > c.all {
			what := strings.Replace(string(c.name), "memory", "bytes of memory", 1)
			exceeded = append(exceeded, fmt.Sprintf("%d %s, %d are asked for", c.all, what, sum))
		}
	}
	if exceeded == nil {
		return nil
	}
	return fmt.Errorf("device %q has room for %s%s", label(s.Name), strings.Join(exceeded, ", and for "), others)
}
