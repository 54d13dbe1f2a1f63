package main

import (
	"bytes"
	"fmt"
	"math"
)

// picture draws the errors of all runs as SVG: a dot for each, the device's above,
// HyperLogLog's below, and the standard error that theory gives.
func picture(runs []run) []byte {
	const width, height, edge = 900.0, 320.0, 40.0
	device := deviceErrors(runs)
	var log []float64
	for _, r := range runs {
		log = append(log, r.errorOf(float64(r.peers.log.Estimate())))
	}
	sigma := theory(sketches)
	span := max(3*sigma, most(device), most(log)) * 1.05
	x := func(e float64) float64 { return width/2 + e/span*(width/2-edge) }
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"14\">\n", width, height)
	fmt.Fprintf(&b, "<title>Errors of %d streams of %d flows</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", len(runs), runs[0].peers.exact())
	fmt.Fprintf(&b, "<rect x=\"%.1f\" y=\"50\" width=\"%.1f\" height=\"200\" fill=\"#eef4fb\"/>\n", x(-sigma), x(sigma)-x(-sigma))
	for _, s := range []float64{-3, -2, -1, 0, 1, 2, 3} {
		fmt.Fprintf(&b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"50\" y2=\"250\" stroke=\"#bbbbbb\"/>\n", x(s*sigma), x(s*sigma))
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"270\" text-anchor=\"middle\">%+.2f %%</text>\n", x(s*sigma), 100*s*sigma)
	}
	fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"30\">%d streams of %d flows: error of the device's PCSA, %.2f %% root mean square (0.78/√%d is %.2f %%)</text>\n",
		edge, len(runs), runs[0].peers.exact(), 100*rms(device), sketches, 100*sigma)
	for _, row := range []struct {
		list        []float64
		y           float64
		colour, say string
	}{{device, 100, "#1f5f9f", "device, PCSA"}, {log, 200, "#b03020", "HyperLogLog"}} {
		for i, e := range row.list {
			up := 30 * (math.Mod(float64(i)*0.618, 1) - 0.5) // apart, so that all are seen
			fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" fill-opacity=\"0.6\"/>\n", x(e), row.y+up, row.colour)
		}
		fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%.0f\" fill=\"%s\">%s</text>\n", edge, row.y-28, row.colour, row.say)
	}
	fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"300\">relative error; the marks are one, two and three standard errors</text>\n</svg>\n", edge)
	return b.Bytes()
}
