package driver

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// TestDevice: a device has a name that slices take, a card its channels for one claim, and one that
// is not open yet no channels.
func TestDevice(t *testing.T) {
	card := source{Device: plugin.Device{Name: "nic_0.a", Info: &nfcommsv1.Device{Address: "dev:0", Driver: "dev", Shape: shape}}}
	d := card.device()
	require.Equal(t, "nic-0-a", d.Name)
	require.Nil(t, d.AllowMultipleAllocations)
	have := d.Capacity[channels]
	require.EqualValues(t, 1000, have.Value.Value())
	require.Nil(t, have.RequestPolicy)
	opening := source{Device: plugin.Device{Name: "s", Shares: 8, Info: &nfcommsv1.Device{Address: "shm:/run/s"}}}
	d = opening.device()
	require.Equal(t, []resourceapi.QualifiedName{clients}, slices.Collect(maps.Keys(d.Capacity)))
}

// TestShares: many claims may have a shared device, each a client and parts of what the device
// enforces. A node of a fabric and a card enforce no part, and have channels to agree on.
func TestShares(t *testing.T) {
	s := source{memory: 1<<30 + 1, Device: plugin.Device{Name: "s", Shares: 8, Info: &nfcommsv1.Device{Address: "shm:/run/s", Driver: "shm", Shape: shape}}}
	want := map[resourceapi.QualifiedName][4]int64{clients: {8, 1, 1, 1}, channels: {1000, 125, 32, 1}, processes: {16, 2, 1, 1}, memory: {1 << 30, 128 << 20, 64 << 20, 64 << 20}}
	for {
		d := s.device()
		require.True(t, *d.AllowMultipleAllocations)
		have := make(map[resourceapi.QualifiedName][4]int64)
		for name, c := range d.Capacity {
			r := c.RequestPolicy.ValidRange
			have[name] = [4]int64{c.Value.Value(), c.RequestPolicy.Default.Value(), r.Min.Value(), r.Step.Value()}
			require.Equal(t, c.Value.Value(), r.Max.Value())
		}
		require.Equal(t, want, have)
		switch {
		case s.fabric == nil && s.limited():
			s.fabric = new(nfcommsv1.GetFabricResponse)
		case s.fabric != nil:
			s.fabric, s.Info.Address = nil, "dev:0"
		default:
			return
		}
		want = map[resourceapi.QualifiedName][4]int64{clients: {8, 1, 1, 1}, channels: {1000, 125, 1, 1}}
	}
}

// TestResources: a device that is sick has a taint, or is left out where the API server has none. A
// slice has no more devices than the API server takes, and a node without devices has a slice.
func TestResources(t *testing.T) {
	var all []source
	for i := range 130 {
		all = append(all, source{Device: plugin.Device{Name: fmt.Sprint("nic", i), Healthy: i > 0, Info: &nfcommsv1.Device{Address: "dev:0", State: nfcommsv1.Device_STATE_FAILED}}})
	}
	list := resources("n", all, false, false).Pools["n"].Slices
	require.Equal(t, []int{64, 64, 2}, []int{len(list[0].Devices), len(list[1].Devices), len(list[2].Devices)})
	require.Equal(t, []resourceapi.DeviceTaint{{Key: "nfcomms.dev/unhealthy", Value: "failed", Effect: "NoSchedule"}}, list[0].Devices[0].Taints)
	require.Empty(t, list[0].Devices[1].Taints)
	require.EqualValues(t, "NoExecute", resources("n", all, false, true).Pools["n"].Slices[0].Devices[0].Taints[0].Effect)
	require.Equal(t, "nic1", resources("n", all, true, false).Pools["n"].Slices[0].Devices[0].Name)
	require.Equal(t, 1, len(resources("n", nil, false, false).Pools["n"].Slices))
	require.Empty(t, resources("n", nil, false, false).Pools["n"].Slices[0].Devices)
}
