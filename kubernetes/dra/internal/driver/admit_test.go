package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claim returns one to which the scheduler allocated results, of this driver and node.
func claim(name string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid(name)}}
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	return c
}

type result = resourceapi.DeviceRequestAllocationResult

// whole is a result that has a device as a whole.
func whole(device string) result {
	return result{Request: "r", Driver: Name, Pool: "n", Device: device}
}

// share is a result that has one client's part of the device s, with channels.
func share(id types.UID, taken int64) result {
	r := whole("s")
	r.ShareID, r.ConsumedCapacity = &id, map[resourceapi.QualifiedName]resource.Quantity{clients: *quantity(1), Name + "/" + channels: *quantity(taken)}
	return r
}

// TestAdmit: what the scheduler allocated is checked against the devices, and against what other
// claims have. Each refusal names what is wrong.
func TestAdmit(t *testing.T) {
	f := newFake()
	d := newDriver(t, f, t.TempDir())
	other := whole("x")
	other.Driver = "example.com"
	p, err := d.admit(t.Context(), claim("one", other, whole("nic-0"), share("1", 60)))
	require.NoError(t, err)
	require.Equal(t, []given{{Request: "r", Device: "nic-0", Name: "nic_0"}, {Request: "r", Device: "s", Name: "s", Share: "1", parts: parts{1, 60, 5, 128 << 20}}}, p.Devices)
	require.NoError(t, d.noted.set(uid("one"), &p))
	_, err = d.admit(t.Context(), claim("two", share("2", 40)))
	require.NoError(t, err)

	large := share("2", 32)
	large.ConsumedCapacity[processes], large.ConsumedCapacity[memory] = *quantity(6), *quantity(192 << 20)
	yes := true
	admin, far := whole("s"), whole("s")
	admin.AdminAccess, far.Pool = &yes, "m"
	configured := claim("two", share("2", 1))
	configured.Status.Allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: Name}}}}
	for says, c := range map[string]*resourceapi.ResourceClaim{
		`given as a whole and cannot be given twice, as claim default/one has it`:                             claim("two", whole("nic-0")),
		`device "s" is given as a whole and cannot be given twice`:                                            claim("two", whole("s")),
		`device "s" has room for 100 channels, 101 are asked for, as claim default/one has it`:                claim("two", share("2", 41)),
		`room for 10 processes, 11 are asked for, and for 268435456 bytes of memory, 335544320 are asked for`: claim("two", large),
		`has room for 2 clients, 3 are asked for`:                                                             claim("two", share("2", 1), share("3", 1)),
		`device "nic-1" is not there`:                                                                         claim("two", whole("nic-1")),
		`device "nic_0" is not there`:                                                                         claim("two", whole("nic_0")),
		`is of node "m", this is "n"`:                                                                         claim("two", far),
		`access of an administrator is not offered`:                                                           claim("two", admin),
		`which knows none`: configured,
	} {
		_, err := d.admit(t.Context(), c)
		require.ErrorContains(t, err, says)
	}
	f.sick("s", true)
	_, err = d.admit(t.Context(), claim("two", share("2", 1)))
	require.ErrorContains(t, err, `device "s" is not healthy`)
}
