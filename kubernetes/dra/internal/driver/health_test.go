package driver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/kubernetes/internal/plugin"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// TestHealth: a device has its health with the daemon's reason, and one that a claim has and that is
// gone is not healthy.
func TestHealth(t *testing.T) {
	f := newFake()
	d := newDriver(t, f, t.TempDir())
	one, err := d.admit(t.Context(), claim("one", whole("nic-0"), share("1", 1)))
	require.NoError(t, err)
	require.NoError(t, d.noted.set(uid("one"), &one))
	f.remove("s")
	f.set(plugin.Device{Name: "sick", Info: &nfcommsv1.Device{State: nfcommsv1.Device_STATE_FAILED, Failure: &nfcommsv1.Failure{Message: "no heartbeat"}}})
	list, _ := f.List()
	found := make(map[string]string)
	for _, h := range d.health(list).GetDevices() {
		require.Equal(t, "n", h.GetDevice().GetPoolName())
		found[h.GetDevice().GetDeviceName()] = h.GetHealth().String() + " " + h.GetMessage()
	}
	require.Equal(t, map[string]string{"nic-0": "HEALTHY ", "s": "UNHEALTHY the device is gone", "sick": "UNHEALTHY the daemon reports failed: no heartbeat"}, found)
}
