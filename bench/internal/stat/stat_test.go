package stat

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSummarise(t *testing.T) {
	s := Summarise([]float64{4, 1, 3, 2})
	require.Equal(t, Stat{N: 4, Mean: 2.5, SD: s.SD, Min: 1, P50: 2, P99: 4, Max: 4}, s)
	require.InDelta(t, math.Sqrt(5.0/3), s.SD, 1e-12)
	require.Zero(t, Summarise(nil))
	require.Equal(t, Stat{N: 1, Mean: 7, Min: 7, P50: 7, P99: 7, Max: 7}, Summarise([]float64{7}))
}

func TestMedian(t *testing.T) {
	require.Zero(t, Median(nil))
	require.EqualValues(t, 2, Median([]float64{9, 1, 2}))
	require.EqualValues(t, 1.5, Median([]float64{9, 1, 2, 0}))
	require.Equal(t, Spread{Median: 2, Min: 1, Max: 9}, SpreadOf([]float64{9, 1, 2}))
}

func TestPairwise(t *testing.T) {
	require.Equal(t, []float64{0.5, 3}, Pairwise([]float64{1, 9, 6, 5}, []float64{2, 0, 2}))
}

func TestRecorder(t *testing.T) {
	r := NewRecorder()
	require.Zero(t, r.Stat(1))
	for i := range 100 {
		r.Record(time.Duration(100 * (i + 1)))
	}
	s := r.Stat(100)
	require.Equal(t, 100, s.N)
	require.InDelta(t, 50.5, s.Mean, 1e-9)
	require.InEpsilon(t, 50, s.P50, 0.02)
	require.InEpsilon(t, 99, s.P99, 0.02)
	require.InEpsilon(t, 1, s.Min, 0.02)
	require.InEpsilon(t, 100, s.Max, 0.02)
	r.Record(-1)
	r.Record(2 * recordCeiling)
	require.Equal(t, 102, r.Stat(1).N)
}

func TestHockney(t *testing.T) {
	size := []float64{4096, 65536, 1 << 20, 20e6}
	ns := make([]float64, len(size))
	for i, n := range size {
		ns[i] = 2000 + n/8
	}
	h := FitHockney(size, ns)
	require.InEpsilon(t, 2000, h.T0, 1e-6)
	require.InEpsilon(t, 8, h.RInf, 1e-6)
	require.InEpsilon(t, 16000, h.NHalf, 1e-6)
	require.InEpsilon(t, 4, h.Rate(h.NHalf), 1e-6)
	require.InEpsilon(t, 0.95*8, h.Rate(h.N95), 1e-6)
	require.Nil(t, FitHockney(size[:1], ns[:1]))
	require.Nil(t, FitHockney([]float64{1, 2}, []float64{2, 1}), "a line that falls")
}
