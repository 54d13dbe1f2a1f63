package bridge

import (
	"context"
	"maps"
	"slices"
)

// Found is a device that a back end knows of on this host.
type Found struct {
	// Address is what Open takes.
	Address string
	// Driver names the back end: "sim", "dev".
	Driver string
	// Info describes the device; nil where only opening it finds out.
	Info *Info
	// Err is nil if nothing is known that speaks against opening the device, else
	// what does: a permission, a missing module, a fault.
	Err error
}

// listFunc returns the devices of a back end that are on this host, in order. Where
// there is none it may return one with an error that names what is missing.
type listFunc func(ctx context.Context) []Found

// RegisterList adds what Devices asks about a scheme. Back ends call it from init.
func RegisterList(scheme string, list listFunc) {
	registry.Lock()
	defer registry.Unlock()
	if registry.list == nil {
		registry.list = make(map[string]listFunc)
	}
	registry.list[scheme] = list
}

// Devices lists the devices on this host that the registered back ends know of, by
// scheme, and then those that the environment has, as a container's does. It
// disturbs none of them. A context that has ended ends it.
func Devices(ctx context.Context) ([]Found, error) {
	registry.RLock()
	lists := maps.Clone(registry.list)
	registry.RUnlock()
	var found []Found
	for _, scheme := range slices.Sorted(maps.Keys(lists)) {
		if err := ctx.Err(); err != nil {
			return nil, &WithdrawnError{Cause: err}
		}
		found = append(found, lists[scheme](ctx)...)
	}
	return append(found, listGiven()...), nil
}
