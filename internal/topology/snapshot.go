package topology

import (
	"fmt"
	"io"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Snapshot is what is known of a fabric at one moment.
type Snapshot struct {
	Torus Torus
	// Nodes by [Torus.Index]; the zero value of those of which nothing is known.
	Nodes []NodeState
	// Routes to show, for example those that a link's cut changed.
	Routes []Route
}

// NodeState is what is known of a node.
type NodeState struct {
	Name string
	// Word is its diagnostic word; one that is not valid: nothing is known.
	Word abi.Diagnostic
	// Links as the node itself sees them.
	Links [Links]LinkState
}

// LinkState is one end of a link in numbers; zero if nobody measured.
type LinkState struct {
	// BytesPerSecond leave by it.
	BytesPerSecond float64
	// Errors and Repeats of packets since the link came up.
	Errors, Repeats uint64
	// Medium between processes, "tls"; empty for memory and where nothing is known.
	Medium string
}

// Between is a medium's name if that joins processes, else empty.
func Between(medium string) string {
	if medium == bridge.MediumMemory.String() {
		return ""
	}
	return medium
}

// Hop is a step of a route.
type Hop struct {
	Link Link
	// Detour: the packet left dimension order.
	Detour bool
}

// Route is the way from a node to another.
type Route struct {
	From, To Node
	Hops     []Hop
}

// State is a node's or link's level, or that it is not known.
type State int

// The states, from the best to the worst, and that nothing is known.
const (
	Normal State = iota
	Sick
	Broken
	Unknown
	States // how many there are
)

var stateNames = [States]string{"normal", "sick", "broken", "unknown"}

// String returns "normal".
func (s State) String() string { return stateNames[s] }

// Of is a snapshot of what a device reports. It has no rates and no routes.
func Of(f *bridge.FabricState) *Snapshot {
	s := &Snapshot{Torus: Torus{f.Side[0], f.Side[1], f.Side[2]}, Nodes: make([]NodeState, len(f.Nodes))}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		s.Nodes[i].Word = n.Word
		for l, end := range n.Links {
			s.Nodes[i].Links[l] = LinkState{Errors: end.Errors, Repeats: end.Repeated, Medium: Between(end.Medium.String())}
		}
	}
	return s
}

// Count returns how many nodes and links are in each state; a link is one for both
// of its ends.
func (s *Snapshot) Count() (nodes, links [States]int) {
	for i := range s.Torus.Nodes() {
		n := s.Torus.Node(i)
		nodes[s.StateOf(n)]++
		for l := XPlus; l < Links; l += 2 {
			if s.Torus.Neighbour(n, l) != n {
				links[s.StateOfLink(n, l)]++
			}
		}
	}
	return nodes, links
}

func (s *Snapshot) at(n Node) *NodeState {
	if i := s.Torus.Index(n); i < len(s.Nodes) {
		return &s.Nodes[i]
	}
	return &NodeState{}
}

// StateOf is the worst level of a node's own parts.
func (s *Snapshot) StateOf(n Node) State {
	word := s.at(n).Word
	if !word.Valid() {
		return Unknown
	}
	broken := 0
	worst := abi.Normal
	for shift := uint(abi.DiagServiceNetwork); shift < abi.DiagZMinus; shift += 2 {
		worst = max(worst, word.Reading(shift))
	}
	there := 0
	for l := range Links {
		if s.Torus.Neighbour(n, l) == n {
			continue
		}
		there++
		if s.StateOfLink(n, l) == Broken {
			broken++
		}
	}
	if broken == there { // nobody reaches it
		return Broken
	}
	return min(State(worst), Broken)
}

// StateOfLink is the worse of what both ends say; what one does not say counts as
// what the other does.
func (s *Snapshot) StateOfLink(n Node, l Link) State {
	a, b := s.at(n).Word, s.at(s.Torus.Neighbour(n, l)).Word
	if !a.Valid() && !b.Valid() {
		return Unknown
	}
	worst := abi.Normal
	if a.Valid() {
		worst = a.Reading(l.shift())
	}
	if b.Valid() {
		worst = max(worst, b.Reading(l.opposite().shift()))
	}
	return min(State(worst), Broken)
}

// Text draws the planes of the torus, then what is not well, and the routes. A row
// is one y, a column one x; the links at the ends lead around.
func (s *Snapshot) Text(w io.Writer) error {
	var b strings.Builder
	for z := range s.Torus.Z {
		if s.Torus.Z > 1 {
			fmt.Fprintf(&b, "z = %d\n", z)
		}
		s.plane(&b, z)
	}
	b.WriteString("o normal  s sick  X broken  ? unknown; links -- normal, ~~ sick, xx broken, .. unknown\n")
	s.list(&b)
	for _, r := range s.Routes {
		fmt.Fprintf(&b, "%v to %v: %s\n", r.From, r.To, r.text())
	}
	for line := range strings.Lines(b.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (r *Route) text() string {
	if len(r.Hops) == 0 && r.From != r.To {
		return "no way"
	}
	parts := make([]string, 0, len(r.Hops))
	for _, h := range r.Hops {
		name := h.Link.String()
		if h.Detour {
			name += "*"
		}
		parts = append(parts, name)
	}
	return fmt.Sprintf("%d hops: %s", len(r.Hops), strings.Join(parts, " "))
}

var (
	nodeMarks = [...]string{"o", "s", "X", "?"}
	across    = [...]string{"--", "~~", "xx", ".."}
	upright   = [...]string{"|", "~", "x", "."}
)

// plane draws the nodes of one z.
func (s *Snapshot) plane(b *strings.Builder, z int) {
	t := s.Torus
	b.WriteString("      ")
	for x := range t.X {
		fmt.Fprintf(b, "%-5d", x)
	}
	b.WriteString("\n")
	for y := range t.Y {
		fmt.Fprintf(b, "%4d  ", y)
		for x := range t.X {
			n := abi.MakeNode(uint8(x), uint8(y), uint8(z))
			b.WriteString(nodeMarks[s.StateOf(n)])
			if t.X > 1 {
				b.WriteString(" " + across[s.StateOfLink(n, XPlus)] + " ")
			}
		}
		b.WriteString("\n")
		if t.Y < 2 {
			continue
		}
		b.WriteString("      ")
		for x := range t.X {
			n := abi.MakeNode(uint8(x), uint8(y), uint8(z))
			fmt.Fprintf(b, "%-5s", upright[s.StateOfLink(n, YPlus)])
		}
		b.WriteString("\n")
	}
}

// list writes a line for each node and link that is not well, and for links that
// carry something.
func (s *Snapshot) list(b *strings.Builder) {
	for i := range s.Torus.Nodes() {
		n := s.Torus.Node(i)
		if st := s.StateOf(n); st != Normal {
			fmt.Fprintf(b, "node %v%s: %s\n", n, bracket(s.at(n).Name), st)
		}
		for l := range Links {
			s.listLink(b, n, l)
		}
	}
}

func bracket(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

func (s *Snapshot) listLink(b *strings.Builder, n Node, l Link) {
	to := s.Torus.Neighbour(n, l)
	if to == n {
		return
	}
	st, m := s.StateOfLink(n, l), s.at(n).Links[l]
	// an end that is not well is listed once, by its plus side
	if (st == Normal || l&1 == 1) && m == (LinkState{}) {
		return
	}
	fmt.Fprintf(b, "link %v %v to %v: %s", n, l, to, st)
	if m.Medium != "" {
		fmt.Fprintf(b, " over %s", m.Medium)
	}
	if m.BytesPerSecond > 0 {
		fmt.Fprintf(b, ", %.1f MB/s", m.BytesPerSecond/1e6)
	}
	if m.Errors > 0 || m.Repeats > 0 {
		fmt.Fprintf(b, ", %d errors, %d packets repeated", m.Errors, m.Repeats)
	}
	b.WriteString("\n")
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
