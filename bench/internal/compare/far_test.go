package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestFar: each way sends the bytes that the emulated processor has now, and only one copies them here.
func TestFar(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	for _, staged := range []bool{false, true} {
		f, err := newFarMemory(100_000)
		require.NoError(t, err)
		defer f.close()
		require.Equal(t, Buffer(100_000), f.mapped)
		c, err := f.contender(t.Context(), dev, staged)
		require.NoError(t, err)
		f.mapped[99_999]++
		_, err = c.Run(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, staged, f.bounce[99_999] == f.mapped[99_999], c.Name)
		require.Equal(t, staged, c.Name == NameFarStaged)
		require.NoError(t, c.Close())
	}
	c, err := NewFar(t.Context(), dev, 4096, true)
	require.NoError(t, err)
	require.NoError(t, c.Close())
}
