package listen

import (
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/coreos/go-systemd/v22/activation"
)

// Names of the sockets that systemd may hand over: FileDescriptorName= of a
// socket unit.
const (
	Control = "control"
	Metrics = "metrics"
)

// Activated returns the listeners that systemd handed over, by name, and takes
// them off the environment. A name that is neither Control nor Metrics is an
// error.
func Activated() (map[string][]net.Listener, error) {
	all, err := activation.ListenersWithNames()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != Control && name != Metrics {
			for _, l := range slices.Concat(slices.Collect(maps.Values(all))...) {
				l.Close()
			}
			return nil, fmt.Errorf("systemd handed over a socket %q: FileDescriptorName must be %q or %q", name, Control, Metrics)
		}
	}
	return all, nil
}
