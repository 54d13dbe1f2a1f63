//go:build cgo

package proto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// TestWalkHosts: whatever two hosts do, the tables of a connection and the firmware do the same.
func TestWalkHosts(t *testing.T) {
	w := talk.NewHostsWalk(connectionTable(t, proto.ConnectionRows()), proto.EndRows(), firmware(t), *walkSeed)
	for i := range *walkSteps / 500 { // each conversation boots a device
		require.NoError(t, w.Step(), "step %d (-walk.seed %d)", i, *walkSeed)
	}
}
