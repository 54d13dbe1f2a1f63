package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// TestDevices: what the daemon has is offered, whole or as shares, sick and well again, as it comes
// and goes. A device that cannot be given is one line.
func TestDevices(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(2)
	d.set("sim0", "sim:", ready)
	d.set("s", "shm:/run/s", ready)
	d.set("nic9", "dev:9", ready, numa(1))
	k := newKubelet(t, folder, nil)
	p := run(t, folder, d.path, func(o *Options) { o.Shares.Of = map[string]int{"nic1": 2} })
	k.devices(ResourceDevice, "nic0", "nic9")
	k.devices(ResourceShare, "nic1:0", "nic1:1", "s:0", "s:1", "s:2")
	require.EqualValues(t, 1, k.endpoint(ResourceDevice).near["nic9"].GetNodes()[0].GetID())
	require.Nil(t, k.endpoint(ResourceDevice).near["nic0"])

	d.set("nic0", "dev:0", failed)
	k.devices(ResourceDevice, "!nic0", "nic9")
	d.set("nic0", "dev:0", resetting) // of a device that failed
	d.set("nic9", "dev:9", resetting) // of one that was well: as before
	d.set("s", "shm:/run/s", draining)
	k.devices(ResourceShare, "nic1:0", "nic1:1", "!s:0", "!s:1", "!s:2")
	k.devices(ResourceDevice, "!nic0", "nic9")
	d.set("nic0", "dev:0", ready)
	k.devices(ResourceDevice, "nic0", "nic9")
	d.remove("nic0")
	d.set("nic3", "dev:3", ready) // under another name
	k.devices(ResourceDevice, "nic3", "nic9")
	d.set("nic-9", "dev:4", ready)
	d.set("nic_9", "dev:5", ready)
	long := strings.Repeat("x", 62)
	d.set(long, "shm:/run/l", ready)
	k.devices(ResourceDevice, "nic-9", "nic3", "nic9")
	p.await(t, `has 64 bytes, the kubelet takes 63`, 1) // the last of the three, of which the kubelet gets none
	require.Equal(t, 1, p.count(`belongs to the process that opened it`), p.text.String())
	require.Equal(t, 1, p.count(`has the variable NFCOMMS_DEVICE_NIC_9 already`))
	require.NoError(t, p.stop())
}

// TestAllocate: a container gets nodes, mounts and variables of its devices, each once. Ids that are
// not there, of the other resource, sick or asked for twice are refused.
func TestAllocate(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(2)
	d.set("s", "shm:/run/s", ready)
	k := newKubelet(t, folder, nil)
	run(t, folder, d.path)
	k.devices(ResourceDevice, "nic0", "nic1")
	k.devices(ResourceShare, "s:0", "s:1", "s:2")
	_, c, err := k.admit("a", ResourceDevice, 2)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"NFCOMMS_DEVICE_NIC0": "dev:/dev/nfcomms0", "NFCOMMS_DEVICE_NIC1": "dev:/dev/nfcomms1"}, c.GetEnvs())
	require.Equal(t, "/dev/nfcomms0", c.GetDevices()[0].GetHostPath())
	require.Len(t, c.GetDevices(), 2)
	_, c, err = k.admit("b", ResourceShare, 2)
	require.NoError(t, err)
	require.Len(t, c.GetMounts(), 1, "two shares of one device are one mount")
	require.True(t, c.GetMounts()[0].GetReadOnly())
	require.Empty(t, c.GetCdiDevices())

	d.set("nic1", "dev:1", failed)
	k.devices(ResourceDevice, "nic0", "!nic1")
	for _, bad := range []struct {
		code codes.Code
		ids  [][]string
	}{
		{codes.NotFound, [][]string{{"nic7"}}},
		{codes.NotFound, [][]string{{"s:0"}}},
		{codes.NotFound, [][]string{{"nic0:0"}}},
		{codes.NotFound, [][]string{{""}}},
		{codes.FailedPrecondition, [][]string{{"nic1"}}},
		{codes.InvalidArgument, [][]string{{"nic0", "nic0"}}},
		{codes.InvalidArgument, [][]string{{"nic0"}, {"nic0"}}},
	} {
		r := new(v1beta1.AllocateRequest)
		for _, ids := range bad.ids {
			r.ContainerRequests = append(r.ContainerRequests, &v1beta1.ContainerAllocateRequest{DevicesIds: ids})
		}
		_, err := k.endpoint(ResourceDevice).client.Allocate(k.ctx, r)
		require.Equal(t, bad.code, status.Code(err), "%v: %v", bad.ids, err)
	}
}

// TestCDI: with a folder containers get names; while it cannot be written they get nodes, and one
// line says so.
func TestCDI(t *testing.T) {
	d, folder, specs := newDaemon(t), short(t), filepath.Join(short(t), "cdi")
	d.cards(2)
	k := newKubelet(t, folder, nil)
	require.NoError(t, os.WriteFile(specs, nil, 0o600)) // root may write to any folder, and to no file as to one
	p := run(t, folder, d.path, func(o *Options) { o.CDI = specs })
	k.devices(ResourceDevice, "nic0", "nic1")
	_, c, err := k.admit("a", ResourceDevice, 1)
	require.NoError(t, err)
	require.Empty(t, c.GetCdiDevices())
	require.Len(t, c.GetDevices(), 1)
	d.set("nic2", "dev:2", ready)
	k.devices(ResourceDevice, "nic0", "nic1", "nic2")
	require.Equal(t, 1, p.count("containers get nodes and mounts in place of names of CDI"))

	require.NoError(t, os.Remove(specs))
	d.set("nic3", "dev:3", ready)
	k.devices(ResourceDevice, "nic0", "nic1", "nic2", "nic3")
	_, c, err = k.admit("b", ResourceDevice, 1)
	require.NoError(t, err)
	require.Equal(t, "nfcomms.dev/device=nic1", c.GetCdiDevices()[0].GetName())
	require.Empty(t, c.GetDevices())
	require.Empty(t, c.GetEnvs())
}

// TestReset: a device is reset before each start of its container, which does not start if that
// fails; a share never is.
func TestReset(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(1)
	d.set("s", "shm:/run/s", ready)
	k := newKubelet(t, folder, nil)
	run(t, folder, d.path, func(o *Options) { o.Reset = true })
	k.devices(ResourceDevice, "nic0")
	k.devices(ResourceShare, "s:0", "s:1", "s:2")
	ids, _, err := k.admit("a", ResourceDevice, 1)
	require.NoError(t, err)
	require.NoError(t, k.start(ResourceDevice, ids))
	require.NoError(t, k.start(ResourceDevice, ids), "its container started again")
	require.Equal(t, map[string]int{"nic0": 2}, d.resets)
	ids, _, err = k.admit("b", ResourceShare, 1)
	require.NoError(t, err)
	require.False(t, k.endpoint(ResourceShare).options.GetPreStartRequired())
	require.NoError(t, k.start(ResourceShare, ids))
	d.mu.Lock()
	d.failing = status.Error(codes.Unavailable, "lost")
	d.mu.Unlock()
	require.ErrorContains(t, k.start(ResourceDevice, []string{"nic0"}), "lost")
	require.Equal(t, codes.NotFound, status.Code(k.start(ResourceDevice, []string{"nic7"})))
	require.Equal(t, map[string]int{"nic0": 3}, d.resets)
}

// TestThousandPods: pods come and go, some killed between their allocation and their start, with
// nothing given twice, and all free at the end.
func TestThousandPods(t *testing.T) {
	d, folder := newDaemon(t), short(t)
	d.cards(4)
	d.set("s", "shm:/run/s", ready)
	k := newKubelet(t, folder, nil)
	run(t, folder, d.path, func(o *Options) { o.Reset = true })
	k.devices(ResourceDevice, "nic0", "nic1", "nic2", "nic3")
	k.devices(ResourceShare, "s:0", "s:1", "s:2")
	before := openFiles(t)
	for i := range 1000 {
		pod, resource, count := fmt.Sprint("pod", i), ResourceDevice, 1+i%2
		if i%3 == 0 {
			resource, count = ResourceShare, 1
		}
		ids, _, err := k.admit(pod, resource, count)
		require.NoError(t, err, pod)
		if i%5 != 0 { // others were killed before they started
			require.NoError(t, k.start(resource, ids))
		}
		if i >= 1 {
			k.release(fmt.Sprint("pod", i-1)) // two at a time
		}
	}
	k.release("pod999")
	require.Empty(t, k.taken)
	require.LessOrEqual(t, openFiles(t), before) // connections of the registrations may have closed since
	_, _, err := k.admit("all", ResourceDevice, 4)
	require.NoError(t, err)
	_, _, err = k.admit("more", ResourceDevice, 1)
	require.ErrorContains(t, err, "0 there")
}

// openFiles counts the descriptors of this process, in which plugin, kubelet and daemon run.
func openFiles(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}
