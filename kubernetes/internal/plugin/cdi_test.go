package plugin

import (
	"path/filepath"
	"testing"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// TestSpecificationIsCDI: the library that runtimes use reads what is written here without an
// objection, and a container that asks for a device gets what it needs.
func TestSpecificationIsCDI(t *testing.T) {
	d, folder, dir := newDaemon(t), short(t), t.TempDir()
	d.set("nic-0.x", "dev:/dev/null0", ready)
	d.set("nic0", "dev:0", ready)
	d.set("s", "shm:/run/s", ready)
	k := newKubelet(t, folder, nil)
	run(t, folder, d.path, func(o *Options) { o.CDI = dir })
	k.devices(ResourceDevice, "nic0")
	k.devices(ResourceShare, "s:0", "s:1", "s:2")

	file, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, file, 1)
	spec, err := cdi.ReadSpec(file[0], 0)
	require.NoError(t, err)
	needed, err := specs.MinimumRequiredVersion(spec.Spec)
	require.NoError(t, err)
	require.LessOrEqual(t, needed, spec.Version, "it uses what its version has not")
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	require.NoError(t, err)
	require.Empty(t, cache.GetErrors())
	require.Equal(t, []string{"nfcomms.dev/device=nic0", "nfcomms.dev/device=s"}, cache.ListDevices())
	container := &oci.Spec{Process: new(oci.Process)}
	missing, err := cache.InjectDevices(container, "nfcomms.dev/device=s")
	require.NoError(t, err)
	require.Empty(t, missing)
	require.Equal(t, []string{"NFCOMMS_DEVICE_S=shm:/run/s"}, container.Process.Env)
	require.Equal(t, "/run/s", container.Mounts[0].Destination)
}
