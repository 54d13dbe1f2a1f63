package bridge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKind: nothing is hardware but a board of a vendor that makes boards.
func TestKind(t *testing.T) {
	for want, infos := range map[string][]Info{
		kindSimulated: {{Driver: "sim"}, {Driver: "shm"}, {Driver: "flawed"}, {Driver: "sim", Board: &Board{Vendor: 0x19ee}}},
		kindEmulated:  {{Driver: "dev"}, {Driver: "vfio"}, {Driver: "vfio", Board: &Board{Vendor: 0x19ee}}, {Driver: "dev", Board: &Board{Vendor: 0x1234, Device: 0x4e46}}},
		kindHardware:  {{Driver: "dev", Board: &Board{Vendor: 0x19ee, Device: 0x4000}}},
	} {
		for _, i := range infos {
			require.Equal(t, want, i.Kind(), "%+v", i)
		}
	}
}
