package main

import (
	"bytes"
	"fmt"
)

// picture draws a tour as SVG.
func picture(tour []city, length uint64) []byte {
	low, high := tour[0], tour[0]
	for _, c := range tour {
		low = city{min(low.X, c.X), min(low.Y, c.Y)}
		high = city{max(high.X, c.X), max(high.Y, c.Y)}
	}
	const width, edge, text = 1000.0, 20.0, 30.0
	scale := width / max(float64(high.X)-float64(low.X), 1)
	height := scale * max(float64(high.Y)-float64(low.Y), 1)
	at := func(c city) (x, y float64) { // north is up
		return edge + scale*(float64(c.X)-float64(low.X)), edge + scale*(float64(high.Y)-float64(c.Y))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\">\n", width+2*edge, height+2*edge+text)
	fmt.Fprintf(&b, "<title>%d cities, tour of length %d</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<polygon fill=\"#eef4fb\" stroke=\"#1f5f9f\" stroke-width=\"2\" points=\"", len(tour), length)
	for _, c := range tour {
		x, y := at(c)
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
	}
	b.WriteString("\"/>\n")
	for _, c := range tour {
		x, y := at(c)
		fmt.Fprintf(&b, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"#b03020\"/>\n", x, y)
	}
	fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%.0f\" font-size=\"18\">%d cities, length %d</text>\n</svg>\n", edge, height+2*edge+text/2, len(tour), length)
	return b.Bytes()
}
