package driver

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// give prepares one claim.
func give(t *testing.T, d *driver, c *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	results, err := d.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{c})
	require.NoError(t, err)
	require.Len(t, results, 1)
	return results[c.UID].Devices, results[c.UID].Err
}

// back unprepares one claim.
func back(t *testing.T, d *driver, id types.UID) error {
	results, err := d.UnprepareResourceClaims(t.Context(), []kubeletplugin.NamespacedObject{{UID: id}})
	require.NoError(t, err)
	require.Contains(t, results, id)
	return results[id]
}

// TestPrepare: with a restart of the driver between all steps a claim's device is reset once, and given
// to no other claim. The specification is there until the claim is given back.
func TestPrepare(t *testing.T) {
	f, dir := newFake(), t.TempDir()
	one, two := claim("one", whole("nic-0"), share("7", 50), share("8", 50)), claim("two", whole("nic-0"))
	share7, share8 := types.UID("7"), types.UID("8")
	for range 2 {
		got, err := give(t, newDriver(t, f, dir), one)
		require.NoError(t, err)
		require.Equal(t, []kubeletplugin.Device{
			{Requests: []string{"r"}, PoolName: "n", DeviceName: "nic-0", CDIDeviceIDs: []string{"nfcomms.dev/claim=uid-of-one-nic-0"}},
			{Requests: []string{"r"}, PoolName: "n", DeviceName: "s", ShareID: &share7, CDIDeviceIDs: []string{"nfcomms.dev/claim=uid-of-one-s"}},
			{Requests: []string{"r"}, PoolName: "n", DeviceName: "s", ShareID: &share8, CDIDeviceIDs: []string{"nfcomms.dev/claim=uid-of-one-s"}},
		}, got)
	}
	require.Equal(t, []string{"nic_0"}, f.resets)
	want := []string{"uid-of-one-nic-0 NFCOMMS_DEVICE_NIC_0=dev:0", "uid-of-one-s NFCOMMS_DEVICE_S=shm:" + socketOf(t, f)}
	require.Equal(t, want, specs(t, newDriver(t, f, dir)))
	_, err := give(t, newDriver(t, f, dir), two)
	require.ErrorContains(t, err, "cannot be given twice")

	f.sick("nic_0", true) // under the claim that has it
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "cdi")))
	_, err = give(t, newDriver(t, f, dir), one) // as after a start of the machine
	require.NoError(t, err)
	require.Equal(t, want, specs(t, newDriver(t, f, dir)))
	f.remove("nic_0")
	_, err = give(t, newDriver(t, f, dir), one)
	require.NoError(t, err, "containers of the claim may run")

	for range 2 {
		require.NoError(t, back(t, newDriver(t, f, dir), one.UID))
		require.Empty(t, specs(t, newDriver(t, f, dir)))
	}
	require.Empty(t, newDriver(t, f, dir).noted.all())
	require.Error(t, back(t, newDriver(t, f, dir), "../x"))
	_, err = give(t, newDriver(t, f, dir), one)
	require.ErrorContains(t, err, `device "nic-0" is not there`)
}

// TestPrepareFails: what fails on the way is asked for again, and nothing is given meanwhile. A claim
// that is given up leaves nothing.
func TestPrepareFails(t *testing.T) {
	f, dir := newFake(), t.TempDir()
	f.failing = errors.New("lost")
	d, one := newDriver(t, f, dir), claim("one", whole("nic-0"))
	_, err := give(t, d, one)
	require.ErrorContains(t, err, `reset device "nic_0": lost`)
	require.Empty(t, d.noted.all(), "its container did not start")

	f.failing = nil
	require.NoError(t, os.WriteFile(d.CDI, nil, 0o600)) // root may write to any folder, and to no file as to one
	for range 2 {
		_, err = give(t, d, one)
		require.ErrorContains(t, err, "cdi")
	}
	_, err = give(t, d, claim("two", share("1", 1)))
	require.ErrorContains(t, err, "cdi")
	require.NoError(t, back(t, d, uid("two")), "given up")
	require.Len(t, f.resets, 2, "no container may run that would lose its memory")
	require.NoError(t, os.Remove(d.CDI))
	_, err = give(t, d, one)
	require.NoError(t, err)

	d.noted.path = filepath.Join(dir, "none", "checkpoint.json")
	require.Error(t, back(t, d, one.UID))
	_, err = give(t, d, claim("two", share("1", 1)))
	require.ErrorContains(t, err, "checkpoint")
}
