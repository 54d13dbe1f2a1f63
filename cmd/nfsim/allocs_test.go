//go:build cgo

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestSharedTransfersDoNotAllocate: neither messages nor transfers take memory of the heap, although
// transfers pass through memory that the device's process maps.
func TestSharedTransfersDoNotAllocate(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), shareDevice(t, "beat=1s"))
	require.NoError(t, err)
	defer dev.Close()
	i, err := dev.Run(t.Context(), nfcomms.Program{Name: "sink"})
	require.NoError(t, err)
	ch := i.Channels[0]
	for _, size := range []int{1, 56, 4096, 1 << 20} {
		data := make([]byte, size)
		send := func() { require.NoError(t, ch.SendInd(t.Context(), data)) }
		require.Zero(t, testing.AllocsPerRun(100, send), "%d bytes", size)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { require.NoError(t, ch.Send(t.Context(), nil)) }))
}
