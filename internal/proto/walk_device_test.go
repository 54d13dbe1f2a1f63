//go:build cgo

package proto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// TestWalkDevice: whatever the host and the process do, the device's table and the firmware do the same.
func TestWalkDevice(t *testing.T) {
	w := talk.NewDeviceWalk(proto.DefaultDevice(), firmware(t), *walkSeed)
	for i := range *walkSteps / 20 { // each is some answers of a program
		require.NoError(t, w.Step(), "step %d (-walk.seed %d)", i, *walkSeed)
	}
	for i, r := range proto.DeviceRows() {
		if *walkSteps >= walkWhole && !w.Model.Used[i] {
			t.Errorf("never followed: %v", r)
		}
	}
	t.Logf("%d steps: %v", *walkSteps/20, w.Events)
}
