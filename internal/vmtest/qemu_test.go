//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQEMUIsChosen: the system's QEMU serves if it knows the device, also where the
// modules beside it are such that a list of all devices ends it. Otherwise the one
// that was unpacked does, which gets a root of its own for modules.
func TestQEMUIsChosen(t *testing.T) {
	const aborts = "#!/bin/bash\n[[ $2 != help ]] || kill -ABRT $$\n"
	for name, c := range map[string]struct {
		script string
		system bool
	}{
		"knows the device":  {aborts + `[[ $2 != vfio-user-pci,help ]] || yes "vfio-user-pci options:" | head -n 100000`, true},
		"knows it not":      {aborts + "echo \"qemu: Device 'vfio-user-pci' not found\" >&2", false},
		"does not run":      {"#!/bin/bash\nexit 1", false},
		"knows another one": {aborts + "echo vfio-user-pcie options:", false},
	} {
		t.Run(name, func(t *testing.T) {
			bin, cache := t.TempDir(), t.TempDir()
			system, unpacked := filepath.Join(bin, "qemu-system-x86_64"), filepath.Join(cache, "qemu")
			require.NoError(t, os.WriteFile(system, []byte(c.script), 0o700))
			require.NoError(t, os.Mkdir(unpacked, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(unpacked, "complete"), nil, 0o600))
			cmd := exec.Command("../../scripts/vm-qemu.sh")
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "VM_CACHE="+cache)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			if c.system {
				require.Equal(t, system, strings.TrimSpace(string(out)))
				return
			}
			require.Equal(t, filepath.Join(unpacked, "qemu"), strings.TrimSpace(string(out)))
			require.DirExists(t, filepath.Join(unpacked, "lib", "qemu-bundle"))
		})
	}
}
