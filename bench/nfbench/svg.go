package main

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// series is one curve of a plot; one without a name has no legend.
type series struct {
	name   string
	colour string
	dashed bool
	x, y   []float64
	// sd, if given, draws a band of one standard deviation.
	sd []float64
}

// palette has colours for curves that are of one kind.
var palette = []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf", "#ff7f0e"}

// plot is a picture of something over message sizes or counts, with a logarithmic x
// axis.
type plot struct {
	title, note string
	xLabel      string
	yLabel      string
	xTicks      []float64 // bytes
	// name writes a tick; nil: as bytes.
	name   func(float64) string
	yLog   bool // a logarithmic y axis
	series []series
}

// Geometry in pixels.
const (
	plotWidth               = 860
	plotLeft, plotRight     = 76, plotWidth - 24
	plotTop, plotBottom     = 64, 400
	legendTop               = plotBottom + 60
	legendRow, legendColumn = 20, 380
	tick, labelRoom         = 5, 44
)

// scale maps the data to the picture.
type scale struct {
	x0, x1, y1 float64
	y0         float64 // of a logarithmic axis: a power of ten; else 0
}

func (s scale) x(v float64) float64 {
	t := (math.Log2(v) - s.x0) / (s.x1 - s.x0)
	return plotLeft + t*(plotRight-plotLeft)
}

func (s scale) y(v float64) float64 {
	t := v / s.y1
	if s.y0 > 0 {
		t = math.Log10(max(v, s.y0)/s.y0) / math.Log10(s.y1/s.y0)
	}
	return plotBottom - t*(plotBottom-plotTop)
}

func (p *plot) scale() scale {
	s := scale{x0: math.Inf(1), x1: math.Inf(-1)}
	least := math.Inf(1)
	for _, c := range p.series {
		for i := range c.x {
			s.x0 = min(s.x0, math.Log2(c.x[i]))
			s.x1 = max(s.x1, math.Log2(c.x[i]))
			top := c.y[i]
			if c.sd != nil {
				top += c.sd[i]
			}
			s.y1 = max(s.y1, top)
			if c.y[i] > 0 {
				least = min(least, c.y[i])
			}
		}
	}
	if s.x1-s.x0 < 1 { // one size: keep it in the middle
		s.x0, s.x1 = s.x0-1, s.x1+1
	}
	if p.yLog && !math.IsInf(least, 1) {
		s.y0 = math.Pow(10, math.Floor(math.Log10(least)))
		s.y1 = math.Pow(10, math.Ceil(math.Log10(s.y1*1.0001)))
		return s
	}
	top := 1.05 * s.y1
	step := niceStep(top)
	s.y1 = step * max(math.Ceil(top/step), 1)
	return s
}

// niceStep is a round grid step that gives four to ten lines up to top.
func niceStep(top float64) float64 {
	if top <= 0 || math.IsInf(top, 0) || math.IsNaN(top) {
		return 1
	}
	base := math.Pow(10, math.Floor(math.Log10(top)))
	for _, f := range []float64{0.1, 0.2, 0.5, 1} {
		if top/(f*base) <= 10 {
			return f * base
		}
	}
	return base
}

// svg draws the plot.
func (p *plot) svg() string {
	var b strings.Builder
	height := legendTop + legendRow*(p.named()+1)/2
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		plotWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, height)
	text(&b, plotLeft, 26, "start", 17, p.title)
	text(&b, plotLeft, 47, "start", 12, p.note)
	s := p.scale()
	p.axes(&b, s)
	entry := 0
	for _, c := range p.series {
		c.draw(&b, s)
		if c.name != "" {
			c.legend(&b, entry)
			entry++
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// named counts the series that have a legend.
func (p *plot) named() int {
	n := 0
	for _, c := range p.series {
		if c.name != "" {
			n++
		}
	}
	return n
}

func text(b *strings.Builder, x, y float64, anchor string, size int, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">%s</text>`+"\n",
		x, y, anchor, size, html.EscapeString(s))
}

func line(b *strings.Builder, x1, y1, x2, y2 float64, colour string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x1, y1, x2, y2, colour)
}

// grid lists the values that have a line.
func (s scale) grid() (values []float64) {
	if s.y0 > 0 {
		for v := s.y0; v <= s.y1*1.01; v *= 10 {
			values = append(values, v)
		}
		return values
	}
	step := niceStep(s.y1)
	for v := 0.0; v <= s.y1+step/2; v += step {
		values = append(values, v)
	}
	return values
}

func (p *plot) axes(b *strings.Builder, s scale) {
	const right, bottom = plotRight, plotBottom
	for _, v := range s.grid() {
		line(b, plotLeft, s.y(v), right, s.y(v), "#e4e4e4")
		text(b, plotLeft-8, s.y(v)+4, "end", 12, fmt.Sprintf("%.4g", v))
	}
	labelled := math.Inf(1) // the last one written, from the right
	for _, v := range slices.Backward(p.xTicks) {
		line(b, s.x(v), bottom, s.x(v), bottom+tick, "black")
		if labelled-s.x(v) > labelRoom {
			labelled = s.x(v)
			text(b, labelled, bottom+20, "middle", 11, p.tickText(v))
		}
	}
	line(b, plotLeft, bottom, right, bottom, "black")
	line(b, plotLeft, plotTop, plotLeft, bottom, "black")
	text(b, (plotLeft+right)/2, bottom+40, "middle", 13, p.xLabel)
	fmt.Fprintf(b, `<text transform="translate(20 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(plotTop+bottom)/2, html.EscapeString(p.yLabel))
}

func (p *plot) tickText(v float64) string {
	if p.name != nil {
		return p.name(v)
	}
	return sizeText(int(v))
}

// countText writes a tick of what is counted.
func countText(v float64) string { return strconv.Itoa(int(v)) }

func (c *series) draw(b *strings.Builder, s scale) {
	if c.sd != nil && len(c.x) > 1 {
		var up, down []string
		for i := range c.x {
			up = append(up, fmt.Sprintf("%.1f,%.1f", s.x(c.x[i]), s.y(c.y[i]+c.sd[i])))
			j := len(c.x) - 1 - i
			down = append(down, fmt.Sprintf("%.1f,%.1f", s.x(c.x[j]), s.y(max(c.y[j]-c.sd[j], 0))))
		}
		fmt.Fprintf(b, `<polygon points="%s %s" fill="%s" opacity="0.15"/>`+"\n",
			strings.Join(up, " "), strings.Join(down, " "), c.colour)
	}
	var at []string
	for i := range c.x {
		at = append(at, fmt.Sprintf("%.1f,%.1f", s.x(c.x[i]), s.y(c.y[i])))
		if !c.dashed {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", s.x(c.x[i]), s.y(c.y[i]), c.colour)
		}
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n",
		strings.Join(at, " "), c.colour, c.dash())
}

func (c *series) dash() string {
	if c.dashed {
		return ` stroke-dasharray="5 4" stroke-opacity="0.7"`
	}
	return ""
}

// legend writes entry i below the axis, two to a row.
func (c *series) legend(b *strings.Builder, i int) {
	x := float64(plotLeft + i%2*legendColumn)
	y := float64(legendTop + i/2*legendRow)
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"/>`+"\n",
		x, y, x+28, y, c.colour)
	text(b, x+36, y+4, "start", 12, c.name)
}

// percentilePlot has an axis of percentiles: each step to the right is a tenth of
// what is left.
func percentilePlot(title string, h Header, yLabel string) *plot {
	return &plot{
		title: title, note: h.Device.Label + ", " + h.Machine.CPU, xLabel: "percentile", yLabel: yLabel, yLog: true,
		name: func(v float64) string { return strconv.FormatFloat(100-100/v, 'g', 6, 64) },
	}
}

// addPercentiles adds a curve.
func (p *plot) addPercentiles(name string, all []Percentile) {
	for _, q := range all {
		p.add(name, 100/(100-q.Percent), q.Value)
	}
}

// add adds a point to the curve of a name, which gets the next colour if it is new.
func (p *plot) add(name string, x, y float64) *series {
	i := slices.IndexFunc(p.series, func(s series) bool { return s.name == name })
	if i < 0 {
		i = len(p.series)
		p.series = append(p.series, series{name: name, colour: palette[i%len(palette)], dashed: i >= len(palette)})
	}
	s := &p.series[i]
	s.x, s.y = append(s.x, x), append(s.y, y)
	if at, there := slices.BinarySearch(p.xTicks, x); !there {
		p.xTicks = slices.Insert(p.xTicks, at, x)
	}
	return s
}

// save writes the plot to a file.
func (p *plot) save(path string) error { return savePicture(path, p.svg()) }

// output is a flag that names a file to write. A path that cannot be written is refused
// before anything is measured; a file that is there stays as it is until then.
type output struct{ path *string }

func (o output) String() string {
	if o.path == nil {
		return ""
	}
	return *o.path
}

func (output) Type() string { return "file" }

func (o output) Set(path string) error {
	_, err := os.Stat(path)
	isNew := os.IsNotExist(err)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	*o.path = path
	err = f.Close()
	if isNew {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// savePicture writes a picture to a file.
func savePicture(path, svg string) error {
	if err := os.WriteFile(path, []byte(svg), 0o644); err != nil {
		return usageError{fmt.Errorf("write plot: %w", err)}
	}
	return nil
}
