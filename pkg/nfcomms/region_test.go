//go:build cgo

package nfcomms

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegisteredObjects: what SendInd takes and can be written to may be registered,
// and transfers of its parts are found.
func TestRegisteredObjects(t *testing.T) {
	dev, err := Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	ch, err := dev.Subscribe(t.Context(), Loopback)
	require.NoError(t, err)
	samples, grid, one := make([]float64, 5000), [100]uint32{7: 7}, struct{ A, B int64 }{1, 2}
	for _, data := range []any{samples, &grid, &one} {
		r, err := dev.Register(data)
		require.NoError(t, err, "%T", data)
		_, err = dev.Register(data)
		require.ErrorIs(t, err, ErrBusy)
		defer r.Close()
	}
	samples[4999], grid[7] = math.Pi, 9
	require.NoError(t, ch.SendInd(t.Context(), samples[1000:]))
	_, err = ch.ReceiveInd(t.Context(), samples[:4000])
	require.NoError(t, err)
	require.Equal(t, math.Pi, samples[3999])
	require.NoError(t, ch.SendInd(t.Context(), &grid))
	_, err = ch.ReceiveInd(t.Context(), grid[:])
	require.NoError(t, err)
	require.EqualValues(t, 9, grid[7])
	s := dev.Stats()
	require.EqualValues(t, 4, s.Registered)
	require.Equal(t, 3, s.Regions)
	require.EqualValues(t, 5000*8+400+16, s.RegionBytes)
	for _, data := range []any{"text", grid, []int(nil), (*int)(nil)} {
		_, err := dev.Register(data)
		require.ErrorIs(t, err, ErrInvalid, "%T", data)
	}
	_, err = dev.Register([]string{"a"})
	require.ErrorIs(t, err, ErrPointers)
}

// TestRegionErrors: every failing call of regions says what was tried.
func TestRegionErrors(t *testing.T) {
	dev, err := Open(t.Context(), "sim:")
	require.NoError(t, err)
	_, err = dev.Import(0)
	require.EqualError(t, err, "import sim: not supported")
	require.ErrorIs(t, err, ErrNotSupported)
	_, err = dev.Alloc(0)
	require.EqualError(t, err, "alloc sim: region of 0 bytes: invalid argument")
	require.NoError(t, dev.Close())
	_, err = dev.Alloc(1)
	require.EqualError(t, err, "alloc sim: device closed")
	_, err = dev.Register(make([]byte, 1))
	require.EqualError(t, err, "register sim: device closed")
}
