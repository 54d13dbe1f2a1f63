package control_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// kindsOf asks for every answer that has times or counters of a device, and returns what each calls
// the device.
func kindsOf(t *testing.T, c *control.Client) map[string]nfcommsv1.Device_Kind {
	ctx, kinds := background(t), make(map[string]nfcommsv1.Device_Kind)
	note := func(what string, k nfcommsv1.Device_Kind, err error) {
		require.NoError(t, err, what)
		kinds[what] = k
	}
	d, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: nic0})
	note("device", d.GetDevice().GetKind(), err)
	for d, err := range c.ListDevices(ctx) {
		note("list", d.GetKind(), err)
	}
	w, err := c.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{})
	require.NoError(t, err)
	first, err := w.Recv()
	for err == nil && first.GetDevice() == nil { // the snapshot may be before the device
		first, err = w.Recv()
	}
	note("watch", first.GetDevice().GetKind(), err)
	g, err := c.Diagnostics.GetDiagnostics(ctx, &nfcommsv1.GetDiagnosticsRequest{Name: nic0})
	note("diagnostics", g.GetDeviceKind(), err)
	p, err := c.Diagnostics.PingDevice(ctx, &nfcommsv1.PingDeviceRequest{Name: nic0})
	note("ping", p.GetDeviceKind(), err)
	l, err := watchLatency(ctx, c, &nfcommsv1.WatchLatencyRequest{Name: nic0, Interval: often})
	note("latency", l.GetDeviceKind(), err)
	o, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: nic0 + "/channels/1"})
	note("channel", o.GetChannel().GetDeviceKind(), err)
	f, err := c.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: nic0})
	note("fabric", f.GetDeviceKind(), err)
	n, err := c.Fabrics.ListNodes(ctx, &nfcommsv1.ListNodesRequest{Parent: nic0})
	note("nodes", n.GetDeviceKind(), err)
	x, err := c.Fabrics.TestLink(ctx, &nfcommsv1.TestLinkRequest{Name: nic0, Node: "0.0.0", Link: "x+"})
	note("link", x.GetDeviceKind(), err)
	return kinds
}

// TestKindsAreTold: each answer with times or counters has the kind of the device that they are of.
func TestKindsAreTold(t *testing.T) {
	for vendor, want := range map[uint16]nfcommsv1.Device_Kind{
		0:      nfcommsv1.Device_KIND_SIMULATED,
		0x1234: nfcommsv1.Device_KIND_EMULATED,
		0x19ee: nfcommsv1.Device_KIND_HARDWARE,
	} {
		t.Run(want.String(), func(t *testing.T) {
			srv, c := serve(t, quick)
			dev := open(t, "flaky:"+t.Name())
			f, ok := flakies.Load(t.Name())
			require.True(t, ok)
			f.(*flaky).set(func(f *flaky) {
				f.vendor = vendor
				f.fabric = &fakeFabric{
					state: bridge.FabricState{Side: [3]int{2, 1, 1}, Nodes: make([]bridge.FabricNodeState, 2)},
					test:  func(context.Context) (bridge.LinkTest, error) { return bridge.LinkTest{Words: 1}, nil },
				}
			})
			require.NoError(t, srv.Attach("nic0", dev))
			kinds := kindsOf(t, c)
			require.Len(t, kinds, 10)
			for what, kind := range kinds {
				require.Equal(t, want, kind, what)
			}
		})
	}
}

// TestKindOfNoDevice: a device that was never open has no kind.
func TestKindOfNoDevice(t *testing.T) {
	srv, c := serve(t, quick)
	unopened.Store(t.Name(), nfcomms.ErrNotSupported)
	require.NoError(t, srv.Open(background(t), "nic0", "flaky:"+t.Name()))
	require.Equal(t, nfcommsv1.Device_KIND_UNSPECIFIED, getDevice(t, c, nic0).GetKind())
}
