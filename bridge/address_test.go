package bridge_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestOptionValues: each kind reads its own, leaves what is not given, and reports
// what was given and what is allowed.
func TestOptionValues(t *testing.T) {
	count := bridge.Limits[int]{Min: 1, Max: 64}
	power := bridge.Limits[int]{Min: 16, Max: 64, Power: true}
	bytes := bridge.Limits[uint64]{Min: 4096, Max: 8 << 30, Step: 4096}
	times := bridge.Limits[time.Duration]{Min: time.Millisecond, Max: time.Minute, Step: time.Millisecond}
	a, err := bridge.ParseAddress("sim:?n=8&m=32&size=6GiB&bytes=8192&wait=3ms&bad=x&minus=-1s&none=0&much=65&odd=48" +
		"&big=9999999999999GiB&wrap=4294971392KiB&off=5000&short=500us&long=4294967297ms")
	require.NoError(t, err)
	n, m, size, wait := 1, 1, uint64(1), time.Second
	require.NoError(t, a.Count("n", &n, count))
	require.NoError(t, a.Count("m", &m, power))
	require.NoError(t, a.Size("size", &size, bytes))
	require.NoError(t, a.Duration("wait", &wait, times))
	require.Equal(t, []any{8, 32, uint64(6 << 30), 3 * time.Millisecond}, []any{n, m, size, wait})
	require.NoError(t, a.Size("bytes", &size, bytes))
	require.EqualValues(t, 8192, size)
	for _, c := range []struct {
		says string
		err  error
	}{
		{"option bad=x: invalid argument: want a count, 1..64", a.Count("bad", &n, count)},
		{"minus=-1s: ", a.Count("minus", &n, count)},
		{"none=0: ", a.Count("none", &n, count)},
		{"much=65: ", a.Count("much", &n, count)},
		{"odd=48: invalid argument: want a count, 16..64, a power of two", a.Count("odd", &n, power)},
		{"bad=x: invalid argument: want a size, 4KiB..8GiB, a multiple of 4KiB", a.Size("bad", &size, bytes)},
		{"big=9999999999999GiB: ", a.Size("big", &size, bytes)},
		{"wrap=4294971392KiB: ", a.Size("wrap", &size, bytes)},
		{"off=5000: ", a.Size("off", &size, bytes)},
		{"bad=x: invalid argument: want a duration, 1ms..1m0s, a multiple of 1ms", a.Duration("bad", &wait, times)},
		{"minus=-1s: ", a.Duration("minus", &wait, times)},
		{"short=500us: ", a.Duration("short", &wait, times)},
		{"long=4294967297ms: ", a.Duration("long", &wait, times)},
	} {
		require.ErrorIs(t, c.err, bridge.ErrInvalid, c.says)
		require.ErrorContains(t, c.err, c.says)
	}
	require.NoError(t, a.Count("missing", &n, count))
	require.NoError(t, a.Size("missing", &size, bytes))
	require.NoError(t, a.Duration("missing", &wait, times))
	require.Equal(t, []any{8, uint64(8192), 3 * time.Millisecond}, []any{n, size, wait}, "what is wrong or missing changes nothing")
}

// TestCheckAddress: a scheme that is not registered, and the error of its back end.
func TestCheckAddress(t *testing.T) {
	bridge.Register("checked", nil)
	require.NoError(t, bridge.CheckAddress("checked:anything"), "without a check nothing is known")
	bridge.RegisterCheck("checked", func(a bridge.Address) error { return a.Only("size") })
	require.NoError(t, bridge.CheckAddress("checked:?size=1"))
	require.ErrorIs(t, bridge.CheckAddress("checked:?bogus=1"), bridge.ErrOption)
	require.ErrorIs(t, bridge.CheckAddress("no-such-scheme:"), bridge.ErrScheme)
	require.ErrorIs(t, bridge.CheckAddress("nothing"), bridge.ErrScheme)
}
