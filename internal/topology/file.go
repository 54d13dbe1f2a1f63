package topology

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/nfcomms/nfcomms/bridge"
)

// Description is the content of a fabric file.
type Description struct {
	Torus Torus
	// Flow is how links know of room: "cumulative" or "classic".
	Flow string
	// Depth is how many words of 16 bytes each FIFO holds; 0: the default.
	Depth int
	// Nodes that the file names; others of the torus may be there as well.
	Nodes []NodeEntry
	// Links that differ from the others.
	Links []LinkEntry
}

// NodeEntry is a node that a file names.
type NodeEntry struct {
	Node Node
	Name string
	// Listen is where its neighbours in other processes reach it, host:port over TCP or
	// udp://host:port.
	Listen string
	// Certificate is the SHA-256 of the certificate it must show, in hex.
	Certificate string
	line        int
}

// LinkEntry is a link that differs from the others.
type LinkEntry struct {
	From Node
	Link Link
	// Off: it is not used.
	Off bool
	// Gigabits a second it carries at most; 0: as many as it can.
	Gigabits float64
	line     int
}

// Find returns the entry of a name or an address as "2.0.1"; nil if there is none.
func (d *Description) Find(what string) *NodeEntry {
	for i := range d.Nodes {
		if e := &d.Nodes[i]; e.Name == what || e.Node.String() == what {
			return e
		}
	}
	return nil
}

// Link returns the entry of a link, given from either end; nil if there is none.
func (d *Description) Link(n Node, l Link) *LinkEntry {
	to := d.Torus.Neighbour(n, l)
	for i := range d.Links {
		e := &d.Links[i]
		if e.From == n && e.Link == l || e.From == to && e.Link == l.opposite() {
			return e
		}
	}
	return nil
}

// reader collects what is wrong with a file.
type reader struct {
	name  string
	d     *Description
	wrong []error
}

func (r *reader) refuse(line int, format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf("%s:%d: %w", r.name, line, fmt.Errorf(format, args...)))
}

// note refuses a line if there is an error.
func (r *reader) note(line int, err error) {
	if err != nil {
		r.wrong = append(r.wrong, fmt.Errorf("%s:%d: %w", r.name, line, err))
	}
}

// Parse reads a fabric file. Its error joins all that is wrong, each with the file's
// name and a line.
func Parse(name string, data []byte) (*Description, error) {
	r := &reader{name: name, d: &Description{Flow: "cumulative"}}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:1: %w: the file is empty", name, ErrSyntax)
	} else if err != nil {
		return nil, noYAML(name, err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		r.refuse(max(more.Line, 1), "%w: one document is all it may hold", ErrSyntax)
	case !errors.Is(err, io.EOF):
		return nil, noYAML(name, err)
	}
	r.file(doc.Content[0])
	if err := errors.Join(r.wrong...); err != nil {
		return nil, err
	}
	return r.d, nil
}

// noYAML is what the parser says of a file, with its line in the place of all others.
func noYAML(name string, err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if number, rest, ok := strings.Cut(strings.TrimPrefix(text, "line "), ": "); ok && rest != "" {
		if n, err := strconv.Atoi(number); err == nil {
			text, line = rest, n
		}
	}
	return fmt.Errorf("%s:%d: %w: %s", name, line, ErrSyntax, text)
}

// fields calls a function for each key of a mapping, in order.
func (r *reader) fields(n *yaml.Node, what string, known map[string]func(*yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.refuse(n.Line, "%w: %s holds settings by name", ErrSyntax, what)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		first, again := seen[k.Value]
		seen[k.Value] = k.Line
		set, ok := known[k.Value]
		switch {
		case again:
			r.refuse(k.Line, "%w: %q is there already, in line %d", ErrSyntax, k.Value, first)
		case !ok:
			r.refuse(k.Line, "%w: unknown key %q", ErrSyntax, k.Value)
		default:
			set(v)
		}
	}
}

// entries calls a function for each item of a list.
func (r *reader) entries(what string, each func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.SequenceNode {
			r.refuse(n.Line, "%w: %s is a list", ErrSyntax, what)
			return
		}
		for _, item := range n.Content {
			each(item)
		}
	}
}

// value returns what sets a field from a scalar.
func value[T any](r *reader, to *T, read func(string) (T, error)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			r.refuse(n.Line, "%w: want a value", ErrSyntax)
			return
		}
		v, err := read(n.Value)
		r.note(n.Line, err)
		*to = v
	}
}

func (r *reader) file(n *yaml.Node) {
	if n.Kind == yaml.MappingNode && !hasKey(n, "torus") {
		r.refuse(n.Line, "%w: it has no torus", ErrSyntax)
	}
	r.fields(n, "the file", map[string]func(*yaml.Node){
		"torus": value(r, &r.d.Torus, ParseTorus),
		"flow":  value(r, &r.d.Flow, parseFlow),
		"depth": value(r, &r.d.Depth, parseDepth),
		"nodes": r.entries("nodes", r.node),
		"links": r.entries("links", r.link),
	})
	if r.d.Torus.Check() != nil {
		return // what follows is measured by it
	}
	r.checkNodes()
	r.checkLinks()
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

func (r *reader) node(n *yaml.Node) {
	e := NodeEntry{line: n.Line}
	r.fields(n, "a node", map[string]func(*yaml.Node){
		"node":        value(r, &e.Node, ParseNode),
		"name":        value(r, &e.Name, parseName),
		"listen":      value(r, &e.Listen, parseListen),
		"certificate": value(r, &e.Certificate, parseCertificate),
	})
	if n.Kind == yaml.MappingNode && !hasKey(n, "node") {
		r.refuse(n.Line, "%w: a node without coordinates (node: x.y.z)", ErrSyntax)
		return
	}
	r.d.Nodes = append(r.d.Nodes, e)
}

func (r *reader) link(n *yaml.Node) {
	e := LinkEntry{line: n.Line}
	r.fields(n, "a link", map[string]func(*yaml.Node){
		"from": value(r, &e.From, ParseNode),
		"link": value(r, &e.Link, ParseLink),
		"off":  value(r, &e.Off, strictBool),
		"rate": value(r, &e.Gigabits, parseRate),
	})
	if n.Kind != yaml.MappingNode {
		return
	}
	if !hasKey(n, "from") || !hasKey(n, "link") {
		r.refuse(n.Line, "%w: a link needs from: x.y.z and link: x+", ErrSyntax)
		return
	}
	r.d.Links = append(r.d.Links, e)
}

// checkNodes holds nodes to the torus and to each other.
func (r *reader) checkNodes() {
	place, name, listen := map[Node]int{}, map[string]int{}, map[string]int{}
	for _, e := range r.d.Nodes {
		r.note(e.line, r.d.Torus.checkNode(e.Node))
		once(r, place, e.Node, e.line, "node %v is there already, in line %d")
		if e.Name != "" {
			once(r, name, e.Name, e.line, "two nodes of the name %q, the other in line %d")
		}
		if _, at, err := bridge.ParseFabricAddress(e.Listen); err == nil { // both media take the port over TCP
			once(r, listen, at, e.line, "two nodes listen on %q, the other in line %d")
		}
	}
}

// ErrContradiction means that two lines of a fabric file cannot both be true.
var ErrContradiction = errors.New("contradiction")

func once[K comparable](r *reader, seen map[K]int, key K, line int, format string) {
	if first, again := seen[key]; again {
		r.note(line, fmt.Errorf("%w: "+format, ErrContradiction, key, first))
		return
	}
	seen[key] = line
}

// checkLinks holds links to the torus and to each other: an entry is about both
// directions, and may be given from either end.
func (r *reader) checkLinks() {
	seen := map[string]LinkEntry{}
	for _, e := range r.d.Links {
		if err := r.d.Torus.checkNode(e.From); err != nil {
			r.note(e.line, err)
			continue
		}
		to := r.d.Torus.Neighbour(e.From, e.Link)
		if to == e.From {
			r.refuse(e.line, "%w: link %v of %v leads to itself: that side of %v is 1", ErrContradiction, e.Link, e.From, r.d.Torus)
			continue
		}
		key := fmt.Sprint(e.From, e.Link)
		if e.Link&1 == 1 {
			key = fmt.Sprint(to, e.Link.opposite())
		}
		if first, again := seen[key]; again {
			r.refuse(e.line, "%w: link %v of %v is there already, in line %d", ErrContradiction, e.Link, e.From, first.line)
			continue
		}
		seen[key] = e
		if e.Off && e.Gigabits > 0 {
			r.refuse(e.line, "%w: a link that is off has no rate", ErrContradiction)
		}
	}
}

// ---- values ----

func parseFlow(s string) (string, error) {
	if s != "cumulative" && s != "classic" {
		return "", fmt.Errorf("flow %q: %w: want cumulative or classic", s, ErrSyntax)
	}
	return s, nil
}

func parseDepth(s string) (int, error) {
	n, ok := decimal(s, 1<<15)
	if !ok || n < 512 || n&(n-1) != 0 {
		return 0, fmt.Errorf("depth %q: %w: want words, 512..32768, a power of two", s, ErrSyntax)
	}
	return int(n), nil
}

func parseName(s string) (string, error) {
	if s == "" || len(s) > 63 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", fmt.Errorf("name %q: %w: want up to 63 of a-z, 0-9 and -", s, ErrSyntax)
	}
	return s, nil
}

func parseListen(s string) (string, error) {
	_, at, err := bridge.ParseFabricAddress(s)
	host, port, _ := net.SplitHostPort(at)
	if n, ok := decimal(port, 65535); err != nil || host == "" || !ok || n == 0 {
		return "", fmt.Errorf("listen %q: %w: want host:port or udp://host:port", s, ErrSyntax)
	}
	return s, nil
}

func parseCertificate(s string) (string, error) {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return "", fmt.Errorf("certificate %q: %w: want the 64 hex digits of its SHA-256", s, ErrSyntax)
	}
	return s, nil
}

func strictBool(s string) (bool, error) {
	if s != "true" && s != "false" {
		return false, fmt.Errorf("%q: %w: want true or false", s, ErrSyntax)
	}
	return s == "true", nil
}

// parseRate reads "28Gbit/s".
func parseRate(s string) (float64, error) {
	number, ok := strings.CutSuffix(s, "Gbit/s")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v > 0 && v <= 1e6) {
		return 0, fmt.Errorf("rate %q: %w: want a number with Gbit/s", s, ErrSyntax)
	}
	return v, nil
}
