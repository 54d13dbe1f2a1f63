package plot

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

// Series is one curve of a plot; one without a name has no legend.
type Series struct {
	Name   string
	Colour string
	Dashed bool
	X, Y   []float64
	// sd, if given, draws a band of one standard deviation.
	Sd []float64
}

// Palette has colours for curves that are of one kind.
var Palette = []string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf", "#ff7f0e"}

// Plot is a picture of something over message sizes or counts, with a logarithmic x
// axis.
type Plot struct {
	Title, Note string
	XLabel      string
	YLabel      string
	XTicks      []float64 // bytes
	// name writes a tick; nil: as bytes.
	Name   func(float64) string
	YLog   bool // a logarithmic y axis
	Series []Series
}

// Geometry in pixels.
const (
	Width                   = 860
	plotLeft, plotRight     = 76, Width - 24
	plotTop, plotBottom     = 64, 400
	legendTop               = plotBottom + 60
	LegendRow, legendColumn = 20, 380
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

func (p *Plot) scale() scale {
	s := scale{x0: math.Inf(1), x1: math.Inf(-1)}
	least := math.Inf(1)
	for _, c := range p.Series {
		for i := range c.X {
			s.x0 = min(s.x0, math.Log2(c.X[i]))
			s.x1 = max(s.x1, math.Log2(c.X[i]))
			top := c.Y[i]
			if c.Sd != nil {
				top += c.Sd[i]
			}
			s.y1 = max(s.y1, top)
			if c.Y[i] > 0 {
				least = min(least, c.Y[i])
			}
		}
	}
	if s.x1-s.x0 < 1 { // one size: keep it in the middle
		s.x0, s.x1 = s.x0-1, s.x1+1
	}
	if p.YLog && !math.IsInf(least, 1) {
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

// SVG draws the plot.
func (p *Plot) SVG() string {
	return Picture(legendTop+LegendRow*(p.named()+1)/2, plotLeft, p.Title, p.Note, func(b *strings.Builder) {
		s := p.scale()
		p.axes(b, s)
		entry := 0
		for _, c := range p.Series {
			c.draw(b, s)
			if c.Name != "" {
				c.legend(b, entry)
				entry++
			}
		}
	})
}

// Picture is an SVG of a height, with a title and a note that begin at left, and what draw adds.
func Picture(height int, left float64, title, note string, draw func(*strings.Builder)) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13">`+"\n",
		Width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", Width, height)
	Text(&b, left, 26, "start", 17, title)
	Text(&b, left, 47, "start", 12, note)
	draw(&b)
	b.WriteString("</svg>\n")
	return b.String()
}

// named counts the series that have a legend.
func (p *Plot) named() int {
	n := 0
	for _, c := range p.Series {
		if c.Name != "" {
			n++
		}
	}
	return n
}

// Text writes a text element at a place in pixels.
func Text(b *strings.Builder, x, y float64, anchor string, size int, s string) {
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

func (p *Plot) axes(b *strings.Builder, s scale) {
	const right, bottom = plotRight, plotBottom
	for _, v := range s.grid() {
		line(b, plotLeft, s.y(v), right, s.y(v), "#e4e4e4")
		Text(b, plotLeft-8, s.y(v)+4, "end", 12, fmt.Sprintf("%.4g", v))
	}
	labelled := math.Inf(1) // the last one written, from the right
	for _, v := range slices.Backward(p.XTicks) {
		line(b, s.x(v), bottom, s.x(v), bottom+tick, "black")
		if labelled-s.x(v) > labelRoom {
			labelled = s.x(v)
			Text(b, labelled, bottom+20, "middle", 11, p.tickText(v))
		}
	}
	line(b, plotLeft, bottom, right, bottom, "black")
	line(b, plotLeft, plotTop, plotLeft, bottom, "black")
	Text(b, (plotLeft+right)/2, bottom+40, "middle", 13, p.XLabel)
	fmt.Fprintf(b, `<text transform="translate(20 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(plotTop+bottom)/2, html.EscapeString(p.YLabel))
}

func (p *Plot) tickText(v float64) string {
	if p.Name != nil {
		return p.Name(v)
	}
	return cli.SizeText(int(v))
}

// CountText writes a tick of what is counted.
func CountText(v float64) string { return strconv.Itoa(int(v)) }

// draw writes the curve.
func (c *Series) draw(b *strings.Builder, s scale) {
	if c.Sd != nil && len(c.X) > 1 {
		var up, down []string
		for i := range c.X {
			up = append(up, fmt.Sprintf("%.1f,%.1f", s.x(c.X[i]), s.y(c.Y[i]+c.Sd[i])))
			j := len(c.X) - 1 - i
			down = append(down, fmt.Sprintf("%.1f,%.1f", s.x(c.X[j]), s.y(max(c.Y[j]-c.Sd[j], 0))))
		}
		fmt.Fprintf(b, `<polygon points="%s %s" fill="%s" opacity="0.15"/>`+"\n",
			strings.Join(up, " "), strings.Join(down, " "), c.Colour)
	}
	var at []string
	for i := range c.X {
		at = append(at, fmt.Sprintf("%.1f,%.1f", s.x(c.X[i]), s.y(c.Y[i])))
		if !c.Dashed {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", s.x(c.X[i]), s.y(c.Y[i]), c.Colour)
		}
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n",
		strings.Join(at, " "), c.Colour, c.dash())
}

func (c *Series) dash() string {
	if c.Dashed {
		return ` stroke-dasharray="5 4" stroke-opacity="0.7"`
	}
	return ""
}

// legend writes entry i below the axis, two to a row.
func (c *Series) legend(b *strings.Builder, i int) {
	x := float64(plotLeft + i%2*legendColumn)
	y := float64(legendTop + i/2*LegendRow)
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"/>`+"\n",
		x, y, x+28, y, c.Colour)
	Text(b, x+36, y+4, "start", 12, c.Name)
}

// PercentilePlot has an axis of percentiles: each step to the right is a tenth of
// what is left.
func PercentilePlot(title string, h cli.Header, yLabel string) *Plot {
	return &Plot{
		Title: title, Note: h.Device.Label + ", " + h.Machine.CPU, XLabel: "percentile", YLabel: yLabel, YLog: true,
		Name: func(v float64) string { return strconv.FormatFloat(100-100/v, 'g', 6, 64) },
	}
}

// AddPercentiles adds a curve.
func (p *Plot) AddPercentiles(name string, all []stat.Percentile) {
	for _, q := range all {
		p.Add(name, 100/(100-q.Percent), q.Value)
	}
}

// Add adds a point to the curve of a name, which gets the next colour if it is new.
func (p *Plot) Add(name string, x, y float64) *Series {
	i := slices.IndexFunc(p.Series, func(s Series) bool { return s.Name == name })
	if i < 0 {
		i = len(p.Series)
		p.Series = append(p.Series, Series{Name: name, Colour: Palette[i%len(Palette)], Dashed: i >= len(Palette)})
	}
	s := &p.Series[i]
	s.X, s.Y = append(s.X, x), append(s.Y, y)
	if at, there := slices.BinarySearch(p.XTicks, x); !there {
		p.XTicks = slices.Insert(p.XTicks, at, x)
	}
	return s
}

// AddTheory adds a dashed line beside each curve that a theory has values for, in its colour. theory
// returns those of the last points of a curve, nil if there are none.
func (p *Plot) AddTheory(theory func(s Series) []float64) {
	for _, s := range slices.Clone(p.Series) {
		if y := theory(s); y != nil {
			p.Series = append(p.Series, Series{Colour: s.Colour, Dashed: true, X: s.X[len(s.X)-len(y):], Y: y})
		}
	}
}

// Save writes the plot to a file.
func (p *Plot) Save(path string) error { return SavePicture(path, p.SVG()) }

// Output is the value of a flag that names a file to write. A path that cannot be written is refused
// before anything is measured; a file that is there stays as it is until then.
func Output(path *string) pflag.Value { return output{path} }

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

// SavePicture writes a picture to a file.
func SavePicture(path, svg string) error {
	if err := os.WriteFile(path, []byte(svg), 0o644); err != nil {
		return cli.UsageError{Err: fmt.Errorf("write plot: %w", err)}
	}
	return nil
}
