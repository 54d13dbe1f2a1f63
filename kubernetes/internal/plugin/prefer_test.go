package plugin

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/nfcomms/nfcomms/internal/topology"
)

// TestPreferred: devices of one NUMA node that are neighbours in their fabric, and of two groups the
// one that fits; shares of another device each.
func TestPreferred(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	for i, at := range []struct {
		numa int32
		node string
	}{{0, "0.0.0"}, {0, "2.0.0"}, {0, "3.0.0"}, {1, ""}, {1, ""}, {1, ""}, {1, ""}} {
		name := fmt.Sprint("nic", i)
		d.nodes[name] = at.node
		d.set(name, fmt.Sprint("dev:", i), ready, numa(at.numa))
	}
	d.set("a", "shm:/run/a", ready)
	d.set("b", "shm:/run/b", ready)
	k := newKubelet(t, folder, nil)
	run(t, folder, d.path, func(o *Options) { o.Shares.Of = map[string]int{"b": 4} })
	k.devices(ResourceShare, "a:0", "a:1", "a:2", "b:0", "b:1", "b:2", "b:3")
	k.await("seven cards", func() bool { return len(k.resources[ResourceDevice].health) == 7 })
	all := []string{"nic0", "nic1", "nic2", "nic3", "nic4", "nic5", "nic6"}
	pick := func(resource string, size int32, available []string, must ...string) []string {
		r, err := k.endpoint(resource).client.GetPreferredAllocation(k.ctx, &v1beta1.PreferredAllocationRequest{
			ContainerRequests: []*v1beta1.ContainerPreferredAllocationRequest{{AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: size}},
		})
		if err != nil {
			return []string{err.Error()}
		}
		ids := r.GetContainerResponses()[0].GetDeviceIDs()
		slices.Sort(ids)
		return ids
	}
	for _, c := range []struct {
		size int32
		must []string
		want []string
	}{
		{1, nil, []string{"nic0"}},
		{2, []string{"nic0"}, []string{"nic0", "nic2"}}, // the torus is a ring: 0 and 3 are neighbours
		{2, []string{"nic1"}, []string{"nic1", "nic2"}},
		{3, nil, []string{"nic3", "nic4", "nic5"}}, // no hops are known: none count
		{3, []string{"nic0"}, []string{"nic0", "nic1", "nic2"}},
		{4, nil, []string{"nic3", "nic4", "nic5", "nic6"}},
		{7, nil, all},
		{0, nil, nil},
	} {
		require.Equal(t, c.want, pick(ResourceDevice, c.size, all, c.must...), "%d with %v", c.size, c.must)
	}
	require.Contains(t, pick(ResourceDevice, 8, all)[0], "not possible")
	require.Contains(t, pick(ResourceDevice, 1, all, "nic0", "nic1")[0], "not possible")
	require.Contains(t, pick(ResourceDevice, 1, all, "nic9")[0], "has no device")
	require.Contains(t, pick(ResourceDevice, 1, []string{"a:0"})[0], "has no device")

	shares := []string{"a:0", "a:1", "b:1", "b:2", "b:3"}
	require.Equal(t, []string{"b:1"}, pick(ResourceShare, 1, shares), "the device with the most left")
	require.Equal(t, []string{"a:0", "b:1"}, pick(ResourceShare, 2, shares))
	require.Equal(t, []string{"a:0", "b:2"}, pick(ResourceShare, 2, shares, "b:2"))
	require.Equal(t, shares, pick(ResourceShare, 5, shares))
}

// TestHops: the shorter way around each ring.
func TestHops(t *testing.T) {
	torus, err := topology.ParseTorus("4x3x1")
	require.NoError(t, err)
	for _, c := range []struct {
		a, b string
		want int
	}{{"0.0.0", "0.0.0", 0}, {"0.0.0", "3.0.0", 1}, {"0.0.0", "2.0.0", 2}, {"3.2.0", "0.0.0", 2}, {"1.1.0", "3.2.0", 3}} {
		a, err := topology.ParseNode(c.a)
		require.NoError(t, err)
		b, err := topology.ParseNode(c.b)
		require.NoError(t, err)
		require.Equal(t, c.want, hops(torus, a, b), "%s to %s", c.a, c.b)
	}
}

// TestParseShares: defaults, devices by name, and what makes no sense.
func TestParseShares(t *testing.T) {
	s, err := ParseShares([]string{"4", "nic0=2", "whole=0"})
	require.NoError(t, err)
	require.Equal(t, []int{4, 0, 2, 0}, []int{s.of("x", "shm:/x"), s.of("x", "dev:0"), s.of("nic0", "dev:0"), s.of("whole", "shm:/x")})
	for _, bad := range []string{"", "x", "-1", "1025", "=3", "a=", "a=b=1"} {
		_, err := ParseShares([]string{bad})
		require.ErrorContains(t, err, "want N or NAME=N", bad)
	}
}
