package driver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/cdi"
)

// specs returns the devices of all specifications.
func specs(t *testing.T, d *driver) (names []string) {
	files, err := filepath.Glob(filepath.Join(d.CDI, "*"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var s cdi.Spec
		require.NoError(t, json.Unmarshal(text, &s))
		require.Equal(t, "nfcomms.dev/claim", s.Kind)
		for _, one := range s.Devices {
			names = append(names, one.Name+" "+one.Edits.Env[0])
		}
	}
	return names
}

// TestSpecification: each claim has a file, in which several parts of one device are one. Files of
// claims that are not noted are swept, and no others.
func TestSpecification(t *testing.T) {
	d := newDriver(t, newFake(), t.TempDir())
	require.NoError(t, d.sweep(), "no folder")
	one := prepared{Devices: []given{{Device: "s", Name: "s", Share: "1"}, {Device: "nic-0", Name: "nic_0"}, {Device: "s", Name: "s", Share: "2"}}}
	require.NoError(t, d.noted.set(uid("one"), &one))
	require.NoError(t, d.describe(t.Context(), uid("one"), one))
	require.NoError(t, d.describe(t.Context(), uid("two"), prepared{Devices: one.Devices[1:2]}))
	want := []string{"uid-of-one-s NFCOMMS_DEVICE_S=shm:/run/s", "uid-of-one-nic-0 NFCOMMS_DEVICE_NIC_0=dev:0"}
	require.Equal(t, append(want, "uid-of-two-nic-0 NFCOMMS_DEVICE_NIC_0=dev:0"), specs(t, d))
	require.NoError(t, os.WriteFile(filepath.Join(d.CDI, "other.json"), []byte(`{"kind": "nfcomms.dev/claim"}`), 0o600))
	require.NoError(t, d.sweep())
	require.Equal(t, want, specs(t, d))
	require.FileExists(t, filepath.Join(d.CDI, "other.json"))
	require.Error(t, d.describe(t.Context(), uid("two"), prepared{Devices: []given{{Name: "gone"}}}))
	require.False(t, d.described(uid("two")))
}
