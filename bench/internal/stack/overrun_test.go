package stack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestOverrun: without flow control all is right while each buffer is filled once. More chunks, and
// wrong ones, are found as such, and a device without memory for the buffers is no measurement.
func TestOverrun(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:?emem=1MiB")
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	o := newOverrun(t.Context(), dev, 4)
	require.Empty(t, o.missing)
	defer func() { require.NoError(t, o.end()) }()
	memory := [2][]byte{compare.Buffer(4 << 20), compare.Buffer(4 << 20)}
	for size := range map[int]bool{8: true, 13: true, 64 << 10: true} {
		for _, buffers := range []int{1, 4} {
			result, err := o.run(t.Context(), size, buffers, buffers, memory)
			require.NoError(t, err)
			require.Zero(t, result.wrong, "no buffer is filled twice")
			require.Equal(t, buffers, result.came)
			require.Positive(t, result.took)
		}
		result, err := o.run(t.Context(), size, 50, 4, memory)
		require.NoError(t, err)
		require.LessOrEqual(t, result.wrong, 50)
		require.Equal(t, 50, result.came)
	}
	_, err = o.run(t.Context(), 1<<20, 8, 4, memory)
	require.ErrorIs(t, err, errRoom)
	_, err = o.run(t.Context(), 8, 4, 4, memory)
	require.NoError(t, err, "the next run is as before")
}

// TestOverrunFinds: the reader calls a chunk wrong that came in the place of another, or of which
// bytes changed on the way.
func TestOverrunFinds(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	o := newOverrun(t.Context(), dev, 4)
	require.Empty(t, o.missing)
	defer func() { require.NoError(t, o.end()) }()
	o.engine.Channels[0], o.engine.Channels[1] = o.engine.Channels[1], o.engine.Channels[0]
	memory := [2][]byte{compare.Buffer(64), compare.Buffer(64)}
	result, err := o.run(t.Context(), 16, 4, 4, memory)
	require.NoError(t, err)
	require.Equal(t, 2, result.wrong, "two chunks are in each other's buffers")
	changed := make([]byte, 16) // the number of chunk 0, and no checksum
	o.engine.Channels[0], o.engine.Channels[1] = o.engine.Channels[1], o.engine.Channels[0]
	ch := nfcomms.ChanOf[[3]uint64](o.reader.Channels[0])
	require.NoError(t, ch.Send(t.Context(), [3]uint64{16, 1, 1}))
	_, err = nfcomms.ChanOf[uint64](o.reader.Channels[0]).Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, o.engine.Channels[0].SendInd(t.Context(), changed))
	found, err := nfcomms.ChanOf[[2]uint64](o.reader.Channels[0]).Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, [2]uint64{1, 1}, found, "the checksum is not of these bytes")
	require.NoError(t, ch.Send(t.Context(), [3]uint64{16, 1, 2})) // a chunk for which nobody asked comes, too
	_, err = nfcomms.ChanOf[uint64](o.reader.Channels[0]).Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, o.engine.Channels[1].SendInd(t.Context(), changed))
	require.NoError(t, o.engine.Channels[0].SendInd(t.Context(), changed))
	found, err = nfcomms.ChanOf[[2]uint64](o.reader.Channels[0]).Receive(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(2), found[0])
}
