package stack

import (
	"fmt"
	"strings"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// Geometry of the waterfalls in pixels.
const (
	fallLeft, fallRight = 130, plot.Width - 96
	fallTop, fallRow    = 64, 26
	fallBar             = 18
	fallColumn          = 140 // of the legend
)

// layerColours are those of the layers, by [trace.Layer].
var layerColours = append(plot.Palette[:len(plot.Palette):len(plot.Palette)], "#333333")

// waterfallSVG draws a bar for each size and direction: its layers, each as long as its share.
func (r *Report) waterfallSVG() string {
	legend := fallTop + fallRow*len(r.Waterfalls) + 24
	note := fmt.Sprintf("%s on %s. Share of each layer, and the median of the whole; clocks compared to ±%s",
		r.Device.Address, r.Machine.CPU, units.Duration(r.ClockErrorNS))
	return plot.Picture(legend+3*plot.LegendRow, 24, "Where the time of a chunk goes, "+r.Device.Label, note, func(b *strings.Builder) {
		for i, f := range r.Waterfalls {
			f.draw(b, fallTop+fallRow*i)
		}
		columns := (plot.Width - 48) / fallColumn
		for l, colour := range layerColours {
			x, y := 24+l%columns*fallColumn, legend+l/columns*plot.LegendRow
			fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/>`+"\n", x, y, colour)
			plot.Text(b, float64(x+18), float64(y+11), "start", 13, trace.Layer(l).String())
		}
	})
}

// draw draws one bar.
func (f Waterfall) draw(b *strings.Builder, y int) {
	baseline, x := float64(y+fallBar-4), float64(fallLeft)
	plot.Text(b, fallLeft-8, baseline, "end", 13, cli.SizeText(f.Size)+" "+f.Direction)
	for _, l := range f.Layers {
		width := l.Share * (fallRight - fallLeft)
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"><title>%s %s, %.1f %%</title></rect>`+"\n",
			x, y, width, fallBar, layerColours[l.index], l.Layer, units.Duration(float64(l.Median)), 100*l.Share)
		x += width
	}
	plot.Text(b, fallRight+8, baseline, "start", 13, units.Duration(float64(f.Whole.Median)))
}
