package bridge_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestOptionValues: each kind reads its own, leaves what is not given, and says
// what it wants.
func TestOptionValues(t *testing.T) {
	a, err := bridge.ParseAddress("sim:?n=8&size=6GiB&bytes=12&wait=3ms&bad=x&minus=-1s&big=9999999999999GiB")
	require.NoError(t, err)
	n, size, wait := 1, uint64(1), time.Second
	require.NoError(t, a.Count("n", &n))
	require.NoError(t, a.Size("size", &size))
	require.NoError(t, a.Duration("wait", &wait))
	require.Equal(t, []any{8, uint64(6 << 30), 3 * time.Millisecond}, []any{n, size, wait})
	require.NoError(t, a.Size("bytes", &size))
	require.EqualValues(t, 12, size)
	for what, err := range map[string]error{
		"a count like 8":            a.Count("bad", &n),
		"n a count":                 a.Count("minus", &n),
		"a size like 64KiB or 6GiB": a.Size("bad", &size),
		"n a size":                  a.Size("big", &size),
		"a duration like 100ms":     a.Duration("bad", &wait),
		"n a duration":              a.Duration("minus", &wait),
	} {
		require.ErrorIs(t, err, bridge.ErrInvalid, what)
		require.ErrorContains(t, err, strings.TrimPrefix(what, "n "))
	}
	require.NoError(t, a.Count("none", &n))
	require.NoError(t, a.Size("none", &size))
	require.NoError(t, a.Duration("none", &wait))
	require.Equal(t, []any{8, uint64(12), 3 * time.Millisecond}, []any{n, size, wait}, "what is wrong or missing changes nothing")
}

// TestCheckAddress: a scheme that nobody registered, and what its back end says.
func TestCheckAddress(t *testing.T) {
	bridge.Register("checked", nil)
	require.NoError(t, bridge.CheckAddress("checked:anything"), "without a check nothing is known")
	bridge.RegisterCheck("checked", func(a bridge.Address) error { return a.Only("size") })
	require.NoError(t, bridge.CheckAddress("checked:?size=1"))
	require.ErrorIs(t, bridge.CheckAddress("checked:?bogus=1"), bridge.ErrOption)
	require.ErrorIs(t, bridge.CheckAddress("no-such-scheme:"), bridge.ErrScheme)
	require.ErrorIs(t, bridge.CheckAddress("nothing"), bridge.ErrScheme)
}
