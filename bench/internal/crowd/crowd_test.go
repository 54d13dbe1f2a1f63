package crowd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

var tinyCrowd = []string{"crowd", "--counts", "1,3", "--sizes", "56,5000", "--rounds", "2", "--slice", "2ms"}

func TestCrowdJSON(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "crowd.svg")
	for _, shape := range []string{shapeProcesses, shapePorts} {
		var r Report
		clitest.Decode(t, clitest.MustRun(t, append(tinyCrowd, "--load", "0,1", "--shape", shape, "--plot", svg, "--output", "json")...), &r)
		clitest.RequireHeader(t, "crowd", r.Header)
		require.Equal(t, shape, r.Shape)
		require.Len(t, r.Rows, 2*2*(4+2*2), "loads, counts, kinds of call")
		for _, row := range r.Rows {
			require.Empty(t, row.Skipped)
			require.Positive(t, row.Rate.Median, row.Call)
			require.LessOrEqual(t, row.P50Ns, row.P99Ns)
			require.GreaterOrEqual(t, row.BestOverMean, 1.0)
			require.LessOrEqual(t, row.WorstOverMean, 1.0)
		}
		require.Equal(t, 1.0, r.Rows[0].OfGoChannels.Median, "the pairs beside themselves")
		require.Len(t, r.Goals, 2*(3+1)+1, "ratios of Send and SendInd with one caller, p99 of Send with each, p50 of one under load")
	}
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	for _, want := range []string{"callers", "Send, 56 B, load 1<", "ReceiveInd, 5 kB, load 0<"} {
		require.True(t, strings.Contains(string(text), want), want)
	}
}

func TestCrowdSkipsWhatWouldTakeTooMuchMemory(t *testing.T) {
	calls := crowdCalls([]int{1 << 20})
	s, err := calls[len(calls)-1].side(t.Context(), nil, shapePorts, 65)
	require.NoError(t, err)
	require.Equal(t, "over 64 MiB in all", s.skipped)
	r := &Report{Rows: []Row{s.row(65, 0)}}
	var out strings.Builder
	r.Table(&out)
	require.Contains(t, out.String(), "not measured: over 64 MiB in all")
}

// TestSampledKeepsTheRoom: however many calls, the samples are spread over all.
func TestSampledKeepsTheRoom(t *testing.T) {
	s := sampled{room: 16}
	for range 100_000 {
		require.NoError(t, s.time(func() error { return nil }))
	}
	require.LessOrEqual(t, len(s.all), 16)
	require.GreaterOrEqual(t, len(s.all), 8)
	require.GreaterOrEqual(t, s.every, 100_000/16/2)
	bad := errors.New("bad")
	require.Equal(t, bad, (&sampled{room: 16}).time(func() error { return bad }))
}

// TestCrowdRow: shares and rates come from counts.
func TestCrowdRow(t *testing.T) {
	s := &crowdSide{ops: make([]int, 4), samples: stat.NewRecorder()}
	s.count([]int{10, 20, 30, 20}, make([]sampled, 4), time.Second, 80*time.Microsecond)
	s.reference = []float64{160}
	row := s.row(4, 0)
	require.Equal(t, []float64{80, 0.5, 1.5, 0.5, 1000},
		[]float64{row.Rate.Median, row.OfGoChannels.Median, row.BestOverMean, row.WorstOverMean, row.CPUNsPerOp})
}
