package plot

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

func TestPlot(t *testing.T) {
	p := &Plot{
		Title: "a < b & c", XLabel: "message size", YLabel: "Gb/s", XTicks: []float64{4096, 65536},
		Series: []Series{
			{Name: "h2d", Colour: "#08519c", X: []float64{4096, 65536}, Y: []float64{10, 60}, Sd: []float64{1, 20}},
			{Colour: "#08519c", Dashed: true, X: []float64{4096, 65536}, Y: []float64{11, 59}},
		},
	}
	path := filepath.Join(t.TempDir(), "plot.svg")
	require.NoError(t, p.Save(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	elements := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	require.Equal(t, 1, elements["svg"])
	require.Equal(t, 2, elements["polyline"])
	require.Equal(t, 1, elements["polygon"], "one band")
	require.Equal(t, 2, elements["circle"])
	require.Contains(t, string(text), "a &lt; b &amp; c")
	require.Contains(t, string(text), ">64 KiB<")
	require.NotContains(t, string(text), "NaN")
	require.ErrorAs(t, p.Save(filepath.Join(path, "below")), new(cli.UsageError))
}

func TestPlotOfOnePoint(t *testing.T) {
	p := &Plot{XTicks: []float64{56}, Series: []Series{{Name: "one", X: []float64{56}, Y: []float64{0}, Sd: []float64{0}}}}
	require.NotContains(t, p.SVG(), "NaN")
	require.NotContains(t, p.SVG(), "Inf")
}

func TestNiceStep(t *testing.T) {
	for _, top := range []float64{0.013, 1, 7.5, 12, 55, 101, 9999} {
		lines := top / niceStep(top)
		require.LessOrEqual(t, lines, 10.0, top)
		require.GreaterOrEqual(t, lines, 3.9, top)
	}
	require.EqualValues(t, 1, niceStep(0))
	require.EqualValues(t, 1, niceStep(math.NaN()))
}

// TestLogarithmicPlot: percentiles have an axis of what is left above them, and
// times one of powers of ten.
func TestLogarithmicPlot(t *testing.T) {
	r := stat.NewRecorder()
	for i := range 1000 {
		r.Record(time.Duration(100 * (i + 1)))
	}
	all := r.Percentiles(1)
	require.Equal(t, 99.9, all[len(all)-1].Percent, "a thousand samples tell no more")
	p := PercentilePlot("latency", cli.Header{}, "ns")
	p.AddPercentiles("one", all)
	p.AddPercentiles("two", all[:2])
	require.Len(t, p.Series, 2)
	require.Len(t, p.XTicks, len(all))
	text := p.SVG()
	for _, want := range []string{">99.9<", ">50<", ">1e+05<", ">1000<"} {
		require.Contains(t, text, want)
	}
	s := p.scale()
	require.Equal(t, []float64{100, 1000, 1e4, 1e5, 1e6}, append(s.grid(), 1e6)[:5])
}
