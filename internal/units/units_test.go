package units

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseBytes(t *testing.T) {
	for text, n := range map[string]uint64{
		"56": 56, "56B": 56, "0": 0, "64KiB": 65536, "1.5MiB": 3 << 19, "20MB": 20e6, "2 kB": 2000, "1GiB": 1 << 30, " 7 ": 7,
		"18446744073709551615": math.MaxUint64, "17179869183GiB": 17179869183 << 30, "0.25KiB": 256,
	} {
		got, err := ParseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, n, got, text)
	}
	for _, text := range []string{
		"", "KiB", "-1", "1.5", "1e300", "NaN", "Inf", "1TB", "17179869184GiB", "18446744073709551616", "0x10", "1_000",
		"1.KiB", ".5KiB", "1.0000001KiB", "9999999999999999999.5GiB", "+1", "1.2.3", "1KiBKiB", "５",
	} {
		_, err := ParseBytes(text)
		require.Error(t, err, text)
	}
}

func TestExact(t *testing.T) {
	for n, text := range map[uint64]string{
		0: "0 B", 56: "56 B", 65536: "64 KiB", 1 << 20: "1 MiB", 20e6: "20 MB", 3000: "3 kB", 1 << 30: "1 GiB", 1001: "1001 B",
		math.MaxUint64: "18446744073709551615 B", 6 << 30: "6 GiB", 1 << 40: "1024 GiB",
	} {
		require.Equal(t, text, Exact(n))
	}
	require.Equal(t, "64KiB", Option(65536))
}

// TestRoundTrip: what is written exactly is read as what it was.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, 1<<34).Draw(t, "n") << rapid.IntRange(0, 30).Draw(t, "shift")
		for _, text := range []string{Exact(n), Option(n)} {
			got, err := ParseBytes(text)
			require.NoError(t, err)
			require.Equal(t, n, got, text)
		}
	})
}

func TestScaled(t *testing.T) {
	for want, got := range map[string]string{
		"0 B": Bytes(0), "512 B": Bytes(512), "1.50 KiB": Bytes(1536), "1000 KiB": Bytes(1000 << 10), "12.3 MiB": Bytes(12.3 * (1 << 20)),
		"64 EiB": Bytes(64 * (1 << 60)), "999": Count(999), "1.23k": Count(1234), "123M": Count(123.4e6),
		"2 s": Scaled(2000, 1000, " ms", " s"),
	} {
		require.Equal(t, want, got)
	}
}

func TestDuration(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0 ns", 0.43: "0.43 ns", 217: "217 ns", 1500: "1.50 µs", 14.16e6: "14.2 ms", 1e6: "1 ms",
		119e9: "119 s", 125.4e9: "2m5s", 3600e9: "1h0m0s",
	} {
		require.Equal(t, want, Duration(ns))
	}
}

func TestFlag(t *testing.T) {
	n := 7
	f := Flag{&n}
	for _, bad := range []string{"", "0", "2TiB", "many"} {
		require.Error(t, f.Set(bad))
		require.Equal(t, "7", f.String()[:1], bad)
	}
	require.NoError(t, f.Set("64 KiB"))
	require.Equal(t, "64KiB", f.String())
	require.Empty(t, Flag{}.String())
}
