//go:build cgo

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// TestHosts has a host that connects to itself.
func TestHosts(t *testing.T) {
	for _, options := range []string{"", "islands=4&managers=4", "slots=16&managers=1"} {
		t.Run(options, func(t *testing.T) {
			bridgetest.RunHosts(t, func(t *testing.T) (_, _ bridge.Device, _ bridge.ListenOptions) {
				dev := openVerified(t, options)
				return dev, dev, bridge.ListenOptions{}
			})
		})
	}
}

// TestHostsOneHop has a host of the device of another node.
func TestHostsOneHop(t *testing.T) {
	bridgetest.RunHosts(t, func(t *testing.T) (_, _ bridge.Device, _ bridge.ListenOptions) {
		far := openOneHop(t, "")
		return far, far, bridge.ListenOptions{}
	})
}

// openOneHop opens the device of another node; the test closes it.
func openOneHop(t *testing.T, options string) bridge.Device {
	near := openDevice(t, "torus=2x1x1&"+options)
	t.Cleanup(func() { require.NoError(t, near.Close()) })
	far, err := near.(bridge.FabricNode).Fabric().Device(t.Context(), at(1))
	require.NoError(t, err)
	return spectest.Verified(t, far)
}

// TestGuests has processes open the channels of the suite.
func TestGuests(t *testing.T) {
	bridgetest.RunGuests(t, guests(t), func(t *testing.T, options string) (_, _ bridge.Device, _ bridge.ListenOptions) {
		dev := openVerified(t, options)
		return dev, dev, bridge.ListenOptions{}
	})
}

// TestGuestsOneHop has processes of another node's device open them to a host of it.
func TestGuestsOneHop(t *testing.T) {
	bridgetest.RunGuests(t, guests(t), func(t *testing.T, options string) (_, _ bridge.Device, _ bridge.ListenOptions) {
		far := openOneHop(t, options)
		return far, far, bridge.ListenOptions{}
	})
}

// guests returns the image of programs that open channels to the host.
func guests(t *testing.T) []byte {
	image, err := program.Build(t.Context(), bridgetest.GuestSource(t, "../../firmware"), program.Options{})
	require.NoError(t, err)
	return image
}

// runGuestsOn has processes of the device of one node connect to this host at that of another.
func runGuestsOn(t *testing.T, torus string, listens, runs int) {
	bridgetest.RunGuests(t, guests(t), func(t *testing.T, options string) (_, _ bridge.Device, _ bridge.ListenOptions) {
		near := openDevice(t, "torus="+torus+"&"+options)
		t.Cleanup(func() { require.NoError(t, near.Close()) })
		device := func(x int) bridge.Device {
			if x == 0 {
				return spectest.Verified(t, near)
			}
			far, err := near.(bridge.FabricNode).Fabric().Device(t.Context(), at(x))
			require.NoError(t, err)
			return spectest.Verified(t, far)
		}
		return device(listens), device(runs), bridge.ListenOptions{}
	})
}

// TestGuestsNextNode has processes connect to the host at the node next to theirs.
func TestGuestsNextNode(t *testing.T) { runGuestsOn(t, "2x1x1", 0, 1) }

// TestGuestsFourHops has them connect over four hops.
func TestGuestsFourHops(t *testing.T) { runGuestsOn(t, "8x1x1", 0, 4) }

// TestGuestsAtTheHost has processes at the host's own node, and the host listen at another.
func TestGuestsAtTheHost(t *testing.T) { runGuestsOn(t, "2x1x1", 1, 0) }
