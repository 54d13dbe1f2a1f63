package topology

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Limits of a torus.
const (
	// SideMax is how many nodes a side may have.
	SideMax = 32
	// NodesMax is how many a torus may have.
	NodesMax = SideMax * SideMax * SideMax
)

// Errors of addresses; texts around them say what was given.
var (
	// ErrSyntax means that a text is no node, target, link or torus.
	ErrSyntax = errors.New("not well-formed")
	// ErrOutside means that a node or target is not one of the torus.
	ErrOutside = errors.New("outside of the fabric")
	// ErrTorus means that there is no torus of such sides.
	ErrTorus = errors.New("no such torus")
)

// Node is the place of a node in a torus; its text is "2.0.1".
type Node = abi.Node

// Target is a process's end of a channel on any node; its text is "2.0.1/1042", or
// "1042" on the device that is asked.
type Target = abi.ID

// decimal reads a number without sign or leading zeros, so that one value has one
// text.
func decimal(s string, most uint64) (uint64, bool) {
	v, err := strconv.ParseUint(s, 10, 32)
	return v, err == nil && v <= most && strconv.FormatUint(v, 10) == s
}

// ParseNode reads "2.0.1". The error is ErrSyntax.
func ParseNode(s string) (Node, error) {
	n, ok := abi.ParseNode(s)
	if !ok {
		return 0, fmt.Errorf("node %q: %w: want x.y.z, each 0..255", s, ErrSyntax)
	}
	return n, nil
}

// ParseTarget reads "2.0.1/1042" or "1042". The error is ErrSyntax.
func ParseTarget(s string) (Target, error) {
	place, number, remote := strings.Cut(s, "/")
	if !remote {
		number = place
	}
	t, ok := decimal(number, abi.ChannelsMax-1)
	if !ok {
		return 0, fmt.Errorf("target %q: %w: want a number below %d, behind x.y.z/ of another node", s, ErrSyntax, abi.ChannelsMax)
	}
	if !remote {
		return abi.LocalID(uint32(t)), nil
	}
	n, err := ParseNode(place)
	if err != nil {
		return 0, fmt.Errorf("target %q: %w", s, err)
	}
	return abi.MakeID(n, uint32(t)), nil
}

// Torus is how many nodes there are a side.
type Torus struct {
	X, Y, Z int
}

// ParseTorus reads "4x4x1". The error is ErrSyntax or ErrTorus.
func ParseTorus(s string) (Torus, error) {
	parts := strings.Split(s, "x")
	if len(parts) != 3 {
		return Torus{}, fmt.Errorf("torus %q: %w: want sides as 4x4x1", s, ErrSyntax)
	}
	var side [3]int
	for i, p := range parts {
		n, ok := decimal(p, 1<<31)
		if !ok {
			return Torus{}, fmt.Errorf("torus %q: %w: want sides as 4x4x1", s, ErrSyntax)
		}
		side[i] = int(n)
	}
	t := Torus{side[0], side[1], side[2]}
	return t, t.Check()
}

// String returns "4x4x1".
func (t Torus) String() string { return fmt.Sprintf("%dx%dx%d", t.X, t.Y, t.Z) }

// Check returns ErrTorus unless each side is 1..SideMax and there are two nodes.
func (t Torus) Check() error {
	for _, side := range t.sides() {
		if side < 1 || side > SideMax {
			return fmt.Errorf("torus %v: %w: sides are 1..%d, which makes %d nodes at most", t, ErrTorus, SideMax, NodesMax)
		}
	}
	if t.Nodes() < 2 {
		return fmt.Errorf("torus %v: %w: one node is no fabric", t, ErrTorus)
	}
	return nil
}

func (t Torus) sides() [3]int { return [3]int{t.X, t.Y, t.Z} }

// Nodes returns how many nodes there are.
func (t Torus) Nodes() int { return t.X * t.Y * t.Z }

// Contains reports whether a node is one of the torus.
func (t Torus) Contains(n Node) bool {
	return int(n.X()) < t.X && int(n.Y()) < t.Y && int(n.Z()) < t.Z
}

// checkNode returns ErrOutside for a node that is not one of the torus.
func (t Torus) checkNode(n Node) error {
	if !t.Contains(n) {
		return fmt.Errorf("node %v: %w of %v", n, ErrOutside, t)
	}
	return nil
}

// Index numbers nodes from 0, x first. The node is one of the torus.
func (t Torus) Index(n Node) int { return int(n.X()) + t.X*(int(n.Y())+t.Y*int(n.Z())) }

// Node is the opposite of Index.
func (t Torus) Node(index int) Node {
	return abi.MakeNode(uint8(index%t.X), uint8(index/t.X%t.Y), uint8(index/(t.X*t.Y)))
}

// Link is one of the six links of a node.
type Link int

// The links, in the order of the firmware.
const (
	XPlus Link = iota
	XMinus
	YPlus
	YMinus
	ZPlus
	ZMinus
	Links // how many there are
)

var linkNames = [Links]string{"x+", "x-", "y+", "y-", "z+", "z-"}

// String returns "x+".
func (l Link) String() string {
	if l < 0 || l >= Links {
		return fmt.Sprintf("link %d", int(l))
	}
	return linkNames[l]
}

// ParseLink reads "x+". The error is ErrSyntax.
func ParseLink(s string) (Link, error) {
	for l, name := range linkNames {
		if s == name {
			return Link(l), nil
		}
	}
	return 0, fmt.Errorf("link %q: %w: want one of %s", s, ErrSyntax, strings.Join(linkNames[:], ", "))
}

// opposite returns the link by which the neighbour is joined.
func (l Link) opposite() Link { return l ^ 1 }

// shift returns where the link's level stands in a diagnostic word.
func (l Link) shift() uint { return uint(abi.DiagXPlus) - 2*uint(l) }

// Neighbour returns the node at the other end of a link: the node itself where a
// side is 1.
func (t Torus) Neighbour(n Node, l Link) Node {
	c := [3]int{int(n.X()), int(n.Y()), int(n.Z())}
	d, step := int(l)/2, 1
	side := t.sides()[d]
	if l&1 == 1 {
		step = side - 1
	}
	c[d] = (c[d] + step) % side
	return abi.MakeNode(uint8(c[0]), uint8(c[1]), uint8(c[2]))
}
