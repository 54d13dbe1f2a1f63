package main

import (
	"encoding/xml"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
