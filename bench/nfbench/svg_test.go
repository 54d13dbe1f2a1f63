package main

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
)

func TestPlot(t *testing.T) {
	p := &plot{
		title: "a < b & c", xLabel: "message size", yLabel: "Gb/s", xTicks: []float64{4096, 65536},
		series: []series{
			{name: "h2d", colour: "#08519c", x: []float64{4096, 65536}, y: []float64{10, 60}, sd: []float64{1, 20}},
			{colour: "#08519c", dashed: true, x: []float64{4096, 65536}, y: []float64{11, 59}},
		},
	}
	path := filepath.Join(t.TempDir(), "plot.svg")
	require.NoError(t, p.save(path))
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
	require.ErrorAs(t, p.save(filepath.Join(path, "below")), new(usageError))
}

func TestPlotOfOnePoint(t *testing.T) {
	p := &plot{xTicks: []float64{56}, series: []series{{name: "one", x: []float64{56}, y: []float64{0}, sd: []float64{0}}}}
	require.NotContains(t, p.svg(), "NaN")
	require.NotContains(t, p.svg(), "Inf")
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
	r := newRecorder()
	for i := range 1000 {
		r.record(time.Duration(100 * (i + 1)))
	}
	all := r.percentiles(1)
	require.Equal(t, 99.9, all[len(all)-1].Percent, "a thousand samples tell no more")
	p := percentilePlot("latency", Header{}, "ns")
	p.addPercentiles("one", all)
	p.addPercentiles("two", all[:2])
	require.Len(t, p.series, 2)
	require.Len(t, p.xTicks, len(all))
	text := p.svg()
	for _, want := range []string{">99.9<", ">50<", ">1e+05<", ">1000<"} {
		require.Contains(t, text, want)
	}
	s := p.scale()
	require.Equal(t, []float64{100, 1000, 1e4, 1e5, 1e6}, append(s.grid(), 1e6)[:5])
}
