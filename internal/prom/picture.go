package prom

import (
	"context"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/units"
)

// Geometry of a picture in pixels.
const (
	columnWidth, rowHeight = 52, 34
	gap                    = 4
	headRoom, legendRow    = 26, 14
	axisRoom               = 62
	mostLegend             = 6 // lines of a legend
)

var palette = []string{"#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a"}

// levels are the colours of 0, 1 and 2 in a state timeline.
var levels = []string{"#37872d", "#f2cc0c", "#c4162a"}

// Picture is how a dashboard looks over a time.
type Picture struct {
	// From and To bound the time, Step is the time between two points.
	From, To time.Time
	Step     time.Duration
	// Rate is what $__rate_interval stands for.
	Rate string
}

// curve is a series with the name that the legend gives it.
type curve struct {
	Series
	name string
}

// Write asks the server for every panel of a dashboard and draws the answers as
// SVG, in the panels' places.
func (p Picture) Write(ctx context.Context, w io.Writer, s *Server, d *Dashboard) error {
	var b strings.Builder
	bottom := 0
	for _, panel := range d.Panels {
		curves, err := p.ask(ctx, s, panel)
		if err != nil {
			return err
		}
		p.draw(&b, panel, curves)
		bottom = max(bottom, panel.GridPos.Y+panel.GridPos.H)
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="11">
<title>%[3]s</title><rect width="100%%" height="100%%" fill="#111217"/>
%[4]s</svg>
`, 24*columnWidth, bottom*rowHeight, html.EscapeString(d.Title), b.String())
	return err
}

// ask returns the curves of a panel, in the order of its queries.
func (p Picture) ask(ctx context.Context, s *Server, panel Panel) ([]curve, error) {
	var all []curve
	for _, target := range panel.Targets {
		series, err := s.QueryRange(ctx, Concrete(target.Expr, p.Rate), p.From, p.To, p.Step)
		if err != nil {
			return nil, err
		}
		for _, one := range series {
			all = append(all, curve{one, legend(target.LegendFormat, one.Labels)})
		}
	}
	return all, nil
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// legend fills in the labels that a legend names.
func legend(format string, labels map[string]string) string {
	return placeholder.ReplaceAllStringFunc(format, func(m string) string { return labels[strings.Trim(m, "{}")] })
}

// frame is the place of a panel in the picture.
type frame struct{ x, y, w, h float64 }

func (p Picture) draw(b *strings.Builder, panel Panel, curves []curve) {
	g := panel.GridPos
	f := frame{float64(g.X*columnWidth + gap/2), float64(g.Y*rowHeight + gap/2), float64(g.W*columnWidth - gap), float64(g.H*rowHeight - gap)}
	if panel.Type == "row" {
		words(b, f.x+6, f.y+f.h-10, "start", "#ccccdc", 14, panel.Title)
		return
	}
	fmt.Fprintf(b, `<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" rx="2" fill="#181b1f" stroke="#2c3235"/>`+"\n", f.x, f.y, f.w, f.h)
	words(b, f.x+8, f.y+17, "start", "#ccccdc", 12, panel.Title)
	curves = slices.DeleteFunc(curves, func(c curve) bool { return !slices.ContainsFunc(c.Values, isFinite) })
	switch {
	case len(curves) == 0:
		words(b, f.x+f.w/2, f.y+f.h/2+8, "middle", "#6e7078", 12, "No data")
	case panel.Type == "stat":
		drawStat(b, f, curves, panel.FieldConfig.Defaults.Unit)
	case panel.Type == "state-timeline":
		p.drawStates(b, f, curves)
	default:
		p.drawCurves(b, f, curves, panel.FieldConfig.Defaults.Unit)
	}
}

func words(b *strings.Builder, x, y float64, anchor, colour string, size int, text string) {
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" text-anchor="%s" fill="%s" font-size="%d">%s</text>`+"\n", x, y, anchor, colour, size, html.EscapeString(text))
}

// drawStat shows the last value of each series.
func drawStat(b *strings.Builder, f frame, curves []curve, unit string) {
	row := (f.h - headRoom) / float64(len(curves))
	for i, c := range curves {
		y := f.y + headRoom + row*float64(i) + row/2
		words(b, f.x+f.w/2, y+8, "middle", palette[0], int(min(28, row-2)), inUnit(c.Values[len(c.Values)-1], unit))
		words(b, f.x+f.w/2, y+24, "middle", "#8e8e99", 10, c.name)
	}
}

// at returns the place of a time in a field that begins at x0.
func (p Picture) at(t, x0, width float64) float64 {
	from, to := float64(p.From.UnixMilli())/1000, float64(p.To.UnixMilli())/1000
	return x0 + (t-from)/(to-from)*width
}

// drawStates draws a bar for each series, coloured by its value.
func (p Picture) drawStates(b *strings.Builder, f frame, curves []curve) {
	row := (f.h - headRoom - 6) / float64(len(curves))
	x0, width := f.x+210, f.w-218
	for i, c := range curves {
		y := f.y + headRoom + row*float64(i)
		words(b, x0-6, y+row/2+4, "end", "#8e8e99", int(min(10, row)), c.name)
		for j := 0; j < len(c.Values); {
			next := j + 1
			for next < len(c.Values) && c.Values[next] == c.Values[j] {
				next++
			}
			left, right := p.at(c.Times[j], x0, width), p.at(c.Times[min(next, len(c.Times)-1)], x0, width)
			colour := levels[max(0, min(len(levels)-1, int(c.Values[j])))]
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, y+1, right-left, row-2, colour)
			j = next
		}
	}
}

// drawCurves draws lines from zero to the largest value, and a legend.
func (p Picture) drawCurves(b *strings.Builder, f frame, curves []curve, unit string) {
	columns := 2
	if f.w < 12*columnWidth-gap {
		columns = 1
	}
	shown := min(len(curves), mostLegend*columns/2)
	plot := frame{f.x + axisRoom, f.y + headRoom + 4, f.w - axisRoom - 10, f.h - headRoom - 14 - legendRow*math.Ceil(float64(shown)/float64(columns))}
	top := 0.0
	for _, c := range curves {
		for _, v := range c.Values {
			if isFinite(v) {
				top = max(top, v)
			}
		}
	}
	if top == 0 {
		top = 1
	}
	for _, part := range []float64{0, 0.5, 1} {
		y := plot.y + plot.h*(1-part)
		fmt.Fprintf(b, `<path d="M%.0f %.1fh%.0f" stroke="#2c3235"/>`+"\n", plot.x, y, plot.w)
		words(b, plot.x-6, y+4, "end", "#8e8e99", 10, inUnit(top*part, unit))
	}
	for i, c := range curves {
		colour := palette[i%len(palette)]
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.3"/>`+"\n", p.line(c, plot, top), colour)
		if i < shown {
			x, y := plot.x+float64(i%columns)*plot.w/2, plot.y+plot.h+legendRow*float64(1+i/columns)
			fmt.Fprintf(b, `<path d="M%.0f %.0fh12" stroke="%s" stroke-width="3"/>`+"\n", x, y-3, colour)
			name := c.name
			if i == shown-1 && len(curves) > shown {
				name += fmt.Sprintf(" and %d more", len(curves)-shown)
			}
			words(b, x+17, y, "start", "#8e8e99", 10, name)
		}
	}
}

// line returns the path of a curve; values that are no numbers leave a gap.
func (p Picture) line(c curve, plot frame, top float64) string {
	var d strings.Builder
	pen := "M"
	for i, v := range c.Values {
		if !isFinite(v) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&d, "%s%.1f %.1f", pen, p.at(c.Times[i], plot.x, plot.w), plot.y+plot.h*(1-max(0, v)/top))
		pen = "L"
	}
	return d.String()
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// inUnit prints a value as Grafana does, roughly.
func inUnit(v float64, unit string) string {
	switch unit {
	case "percentunit":
		return fmt.Sprintf("%.3g %%", 100*v)
	case "s":
		return units.Scaled(v*1e9, 1000, " ns", " µs", " ms", " s")
	case "bytes":
		return units.Scaled(v, 1024, " B", " KiB", " MiB", " GiB")
	case "Bps":
		return units.Scaled(v, 1000, " B/s", " kB/s", " MB/s", " GB/s")
	case "ops":
		return units.Scaled(v, 1000, " /s", " k/s", " M/s")
	}
	return units.Scaled(v, 1000, "", " k", " M", " G")
}
