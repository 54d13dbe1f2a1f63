package topology

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Geometry of the picture in pixels.
const (
	svgCell  = 96 // between two nodes
	svgNode  = 17 // radius
	svgEdge  = 60 // around a plane
	svgSlant = 30 // a node's offset from the one below, so that z links show
	svgStub  = 34 // of a link that leads around
)

var stateColours = [...]string{"#2ca02c", "#e8a33d", "#d62728", "#9a9a9a"}

// SVG draws the torus: planes of one z are drawn one after the other, links that
// lead around end in the margin, and routes lie over their links.
func (s *Snapshot) SVG(w io.Writer) error {
	var b strings.Builder
	width := 2*svgEdge + s.Torus.Z*(s.Torus.X*svgCell+svgEdge)
	height := 2*svgEdge + s.Torus.Y*svgCell + 24 + 18*len(s.Routes)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for i := range s.Torus.Nodes() {
		for _, l := range []Link{XPlus, YPlus, ZPlus} {
			s.svgLink(&b, s.Torus.Node(i), l)
		}
	}
	for _, r := range s.Routes {
		s.svgRoute(&b, r)
	}
	for i := range s.Torus.Nodes() {
		s.svgNode(&b, s.Torus.Node(i))
	}
	for i, r := range s.Routes {
		svgText(&b, svgEdge, height-18*(len(s.Routes)-i), "start", fmt.Sprintf("%v to %v: %s", r.From, r.To, r.text()))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// place is where a node is drawn.
func (s *Snapshot) place(n Node) (x, y int) {
	plane := s.Torus.X*svgCell + svgEdge
	return svgEdge + int(n.Z())*plane + int(n.X())*svgCell + svgNode,
		svgEdge + int(n.Y())*svgCell + svgNode + int(n.Z())*svgSlant/max(s.Torus.Z, 1)
}

func svgText(b *strings.Builder, x, y int, anchor, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(s))
}

func svgLine(b *strings.Builder, x1, y1, x2, y2 int, style, title string) {
	fmt.Fprintf(b, `<line x1="%d" y1="%d" x2="%d" y2="%d" %s><title>%s</title></line>`+"\n",
		x1, y1, x2, y2, style, html.EscapeString(title))
}

// around reports whether a link leads over the edge of the picture.
func (s *Snapshot) around(n Node, l Link) bool {
	to := s.Torus.Neighbour(n, l)
	return to.X() < n.X() || to.Y() < n.Y() || to.Z() < n.Z()
}

func (s *Snapshot) svgLink(b *strings.Builder, n Node, l Link) {
	to := s.Torus.Neighbour(n, l)
	if to == n {
		return
	}
	st := s.StateOfLink(n, l)
	style := fmt.Sprintf(`stroke="%s" stroke-width="3"`, stateColours[st])
	if st == Broken {
		style += ` stroke-dasharray="3 5"`
	}
	if l == ZPlus {
		style += ` opacity="0.4"`
	}
	title := fmt.Sprintf("%v %v to %v: %s%s", n, l, to, st, s.rate(n, l))
	x1, y1 := s.place(n)
	x2, y2 := s.place(to)
	if !s.around(n, l) {
		svgLine(b, x1, y1, x2, y2, style, title)
		return
	}
	switch l {
	case XPlus:
		svgLine(b, x1, y1, x1+svgStub, y1, style, title)
		svgLine(b, x2, y2, x2-svgStub, y2, style, title)
	case YPlus:
		svgLine(b, x1, y1, x1, y1+svgStub, style, title)
		svgLine(b, x2, y2, x2, y2-svgStub, style, title)
	default:
		svgLine(b, x1, y1, x1+svgStub, y1+svgStub, style, title)
		svgLine(b, x2, y2, x2-svgStub, y2-svgStub, style, title)
	}
}

// rate is what both directions of a link carry, as text.
func (s *Snapshot) rate(n Node, l Link) string {
	a := s.at(n).Links[l].BytesPerSecond
	z := s.at(s.Torus.Neighbour(n, l)).Links[l.opposite()].BytesPerSecond
	if a == 0 && z == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f and %.1f MB/s", a/1e6, z/1e6)
}

func (s *Snapshot) svgRoute(b *strings.Builder, r Route) {
	at := r.From
	for _, h := range r.Hops {
		to := s.Torus.Neighbour(at, h.Link)
		x1, y1 := s.place(at)
		x2, y2 := s.place(to)
		style := `stroke="#1f77b4" stroke-width="6" opacity="0.5" stroke-linecap="round"`
		if h.Detour {
			style = `stroke="#9467bd" stroke-width="6" opacity="0.5" stroke-linecap="round"`
		}
		svgLine(b, x1, y1, x2, y2, style, fmt.Sprintf("%v to %v: %v", r.From, r.To, h.Link))
		at = to
	}
}

func (s *Snapshot) svgNode(b *strings.Builder, n Node) {
	x, y := s.place(n)
	st := s.StateOf(n)
	fmt.Fprintf(b, `<circle cx="%d" cy="%d" r="%d" fill="white" stroke="%s" stroke-width="3"><title>%s</title></circle>`+"\n",
		x, y, svgNode, stateColours[st], html.EscapeString(fmt.Sprintf("%v%s: %s", n, bracket(s.at(n).Name), st)))
	svgText(b, x, y+4, "middle", n.String())
}

// Diagnose lists the parts of a node that are not normal, as "temperature sick".
func Diagnose(word abi.Diagnostic) []string {
	var found []string
	names := []struct {
		shift uint
		name  string
	}{
		{abi.DiagServiceNetwork, "service network"}, {abi.DiagMemory, "memory"}, {abi.DiagPeripheral, "peripheral"},
		{abi.DiagCore, "core"}, {abi.DiagCurrent, "current"}, {abi.DiagVoltage, "voltage"}, {abi.DiagTemperature, "temperature"},
	}
	for _, part := range names {
		if level := word.Reading(part.shift); level != abi.Normal {
			found = append(found, part.name+" "+stateNames[min(State(level), Broken)])
		}
	}
	for l := range Links {
		if level := word.Reading(l.shift()); level != abi.Normal {
			found = append(found, "link "+l.String()+" "+stateNames[min(State(level), Broken)])
		}
	}
	return found
}
