package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// shape is that of devices below.
var shape = &nfcommsv1.Shape{Channels: 1000, Islands: 4, Contexts: 64}

// flat returns attributes as text.
func flat(list attributes) map[string]string {
	all := make(map[string]string)
	for name, a := range list {
		switch {
		case a.IntValue != nil:
			all[string(name)] = fmt.Sprint(*a.IntValue)
		case a.VersionValue != nil:
			all[string(name)] = "v" + *a.VersionValue
		default:
			all[string(name)] = *a.StringValue
		}
	}
	return all
}

// TestAttributes: a slice has what the daemon reports of a device, and nothing that it does not know.
func TestAttributes(t *testing.T) {
	numa := int32(1)
	card := source{Device: plugin.Device{Name: "nic_0.a", Healthy: true, Info: &nfcommsv1.Device{
		Address: "dev:0", Driver: "dev", AbiMajor: 1, AbiMinor: 2, Shape: shape,
		Board: &nfcommsv1.Board{Address: "0000:03:00.0", VendorId: 0x19ee, DeviceId: 0x4000, Serial: "x" + strings.Repeat("é", 40), NumaNode: &numa, Link: &nfcommsv1.BusLink{Width: 8}},
	}}, fabric: &nfcommsv1.GetFabricResponse{Torus: "4x4x1", Node: "1.2.0", Links: &nfcommsv1.LinkCounts{Normal: 3, Broken: 1}}}
	require.Equal(t, map[string]string{
		"name": "nic_0.a", "kind": "card", "driver": "dev", "abi": "v1.2.0", "islands": "4", "contexts": "64",
		"vendor": "19ee", "model": "4000", "serial": "x" + strings.Repeat("é", 31), "numaNode": "1", "lanes": "8", "resource.kubernetes.io/pciBusID": "0000:03:00.0",
		"torus": "4x4x1", "node": "1.2.0", "x": "1", "y": "2", "z": "0", "links": "3",
		"ringX": "4x4x1:*.2.0", "ringY": "4x4x1:1.*.0", "ringZ": "4x4x1:1.2.*",
	}, flat(card.attributes()))
	opening := source{Device: plugin.Device{Name: "s", Shares: 8, Info: &nfcommsv1.Device{Address: "shm:/run/s"}}, fabric: &nfcommsv1.GetFabricResponse{Torus: "?"}}
	require.Equal(t, map[string]string{"name": "s", "kind": "shared"}, flat(opening.attributes()))
}
