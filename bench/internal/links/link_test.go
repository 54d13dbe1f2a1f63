package links

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

// TestLinkJSON: the firmware's link by cycles is what formula and simulation say, and
// cumulative credits need no wait at the smallest FIFO.
func TestLinkJSON(t *testing.T) {
	var r LinkReport
	svg := filepath.Join(t.TempDir(), "link.svg")
	clitest.Decode(t, clitest.MustRun(t, "link", "--cycles", "20000", "--time", "2ms", "--errors", "0,1e-4", "--output", "json", "--plot", svg), &r)
	require.Equal(t, "link", r.Command)
	require.Len(t, r.Flows, 8)
	for _, f := range r.Flows {
		require.InEpsilon(t, f.Simulated, f.Running, 0.02, "%s, %d words", f.Flow, f.Depth)
		if f.Flow == "classic" {
			require.InEpsilon(t, f.Paper, f.Formula, 0.002)
			require.InEpsilon(t, f.Formula, f.Running, 0.04)
		} else {
			require.Greater(t, f.Running/f.Formula, 0.99, "no wait")
		}
	}
	require.Len(t, r.Running, 2)
	for _, l := range r.Running {
		require.Zero(t, l.Changed+l.Doubled)
		require.Positive(t, l.CPUVsNear)
	}
	require.Len(t, r.Sockets, 3)
	for i, medium := range []string{"tcp", "tls", "udp"} {
		require.Equal(t, medium, r.Sockets[i].Medium)
	}
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(text), "cumulative, firmware")
	require.Contains(t, string(text), label)
	require.Equal(t, label, r.Label)
}

func TestLinkTable(t *testing.T) {
	out := clitest.MustRun(t, "link", "--cycles", "10000", "--time", "1ms", "--errors", "0", "--rate", "28", "--threads", "1")
	for _, want := range []string{label, "rates of lines are modelled", "classic", "cumulative", "0.595", "held to 28 Gb/s", "of memcpy, near", "of the stream"} {
		require.Contains(t, out, want)
	}
}

// TestLinkCables: a cable of the report is an error rate of words.
func TestLinkCables(t *testing.T) {
	o := LinkOptions{Cycles: 10000, Time: time.Second, Threads: 1, Errors: []float64{0}, cables: []string{"z+5m8.5"}}
	require.NoError(t, o.check())
	require.Len(t, o.Errors, 2)
	require.InEpsilon(t, 128*7.04e-10, o.Errors[1], 1e-6)
}

func TestFabricJSON(t *testing.T) {
	var r FabricReport
	dir := t.TempDir()
	clitest.Decode(t, clitest.MustRun(t, "fabric", "--torus", "3x2x1", "--pings", "20", "--time", "1ms", "--errors", "1e-5", "--output", "json",
		"--plot", filepath.Join(dir, "hops.svg")), &r)
	require.Equal(t, label, r.Label)
	require.Len(t, r.Hops, 2)
	require.Equal(t, []int{1, 2}, []int{r.Hops[0].Hops, r.Hops[1].Hops})
	require.Positive(t, r.Hops[0].P50Ns)
	require.Len(t, r.Sizes, len(fabricSizes))
	require.Len(t, r.Access, len(fabricAccessSizes))
	require.Len(t, r.Lookups, len(fabricLookupPages))
	require.Positive(t, r.Lookups[0].CachedNs)
	require.EqualValues(t, 6*5*(20000/36), r.All.Packets)
	require.Zero(t, r.Cut.Changed+r.Cut.Doubled)
	require.Equal(t, r.Cut.Sent, r.Cut.Came+r.Cut.Lost)
	require.NotContains(t, r.Cut.Before, "0.0.0 x+ to 1.0.0: broken")
	require.Contains(t, r.Cut.During, "0.0.0 x+ to 1.0.0: broken")
	text, err := os.ReadFile(filepath.Join(dir, "hops.svg"))
	require.NoError(t, err)
	require.Contains(t, string(text), "<svg")
}

func TestFabricTable(t *testing.T) {
	out := clitest.MustRun(t, "fabric", "--torus", "2x1x1", "--pings", "5", "--time", "1ms")
	for _, want := range []string{"torus 2x1x1", "half round trip", "all to all", "around it after", "meanwhile"} {
		require.Contains(t, out, want)
	}
}

func TestFabricBadInput(t *testing.T) {
	for line, says := range map[string]string{
		"fabric --torus 1x1x1":   "one node is no fabric",
		"fabric --torus 33x1x1":  "sides are 1..32",
		"fabric --torus 8x8x8":   "more than 64 nodes",
		"fabric --torus 4":       "want sides as 4x4x1",
		"fabric --errors 0.5":    "--errors 0.5",
		"fabric --pings 0":       "--pings 0",
		"fabric --threads -1":    "--threads -1",
		"link --rate -1":         "--rate -1",
		"link --cables q+1m9":    `--cables "q+1m9" is none`,
		"link --errors 0.1":      "--errors 0.1",
		"link --cycles 5":        "--cycles 5",
		"link --threads 9":       "--threads 9",
		"link --time 0s":         "--time 0s",
		"fabric --time 1h":       "--time 1h",
		"link --errors NaN":      "--errors NaN",
		"fabric --plot /no/such": `"--plot" flag: open`,
	} {
		code, _, errs := clitest.Run(t.Context(), fieldsWithQuick(line)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Contains(t, errs, says)
	}
}

// fieldsWithQuick splits a line and keeps what it measures before it fails short.
func fieldsWithQuick(line string) []string {
	args := strings.Fields(line)
	if args[1] == "--plot" {
		args = append(args, "--torus", "2x1x1", "--pings", "1", "--time", "1ms")
	}
	return args
}
