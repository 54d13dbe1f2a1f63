//go:build linux

package ring

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// TestBadMemory: a call whose memory cannot be reached fails by itself. Nothing of it is published or
// released, and the ring continues.
func TestBadMemory(t *testing.T) {
	r := create(t, Config{})
	w, d := pair(t, r)
	ctx := background(t)
	const size = 6000
	goesOn := func() {
		require.NoError(t, w.Write(ctx, []byte("on")))
		buf := make([]byte, size)
		n, err := d.Read(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, "on", string(buf[:n]))
	}
	for _, kind := range []string{"truncated file", "no access", "read only"} {
		for _, good := range []int{0, 4096} {
			bad := bridgetest.BadMemory(t, kind, size, good)
			if kind != "read only" {
				require.ErrorIs(t, w.Write(ctx, bad), ErrMemory)
				goesOn()
				n, err := w.WriteBatch(ctx, [][]byte{[]byte("first"), []byte("on"), bad, []byte("never")})
				require.ErrorIs(t, err, ErrMemory)
				require.Equal(t, 2, n)
				for _, want := range []string{"first", "on"} {
					p, err := d.Peek(ctx)
					require.NoError(t, err)
					require.Equal(t, want, string(p))
					d.Release()
				}
			}
			goesOn()
			whole := make([]byte, size)
			require.NoError(t, w.Write(ctx, whole))
			_, err := d.Read(ctx, bad)
			require.ErrorIs(t, err, ErrMemory)
			n, err := d.Read(ctx, whole)
			require.NoError(t, err, "the packet stayed")
			require.Equal(t, size, n)
			goesOn()
		}
	}
}
