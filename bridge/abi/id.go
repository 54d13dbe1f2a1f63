package abi

import "fmt"

// ID names a target of a device, or of any node of a fabric: the target's number in
// the low half and, with its highest bit, the node's coordinates. See
// docs/design/0018-target-ids.md.
type ID uint64

// Shifts of an ID (enum nfc_id_field).
const (
	idTargetShift = 0  // 24 bits
	idZShift      = 32 // 8 bits each
	idYShift      = 40
	idXShift      = 48
	idNodeShift   = 63 // the coordinates are there
)

// Node is the place of a node in a torus: x, y and z in 8 bits each, z lowest, as
// in the header of a packet.
type Node uint32

// MakeNode packs coordinates.
func MakeNode(x, y, z uint8) Node { return Node(x)<<16 | Node(y)<<8 | Node(z) }

// X returns the first coordinate.
func (n Node) X() uint8 { return uint8(n >> 16) }

// Y returns the second coordinate.
func (n Node) Y() uint8 { return uint8(n >> 8) }

// Z returns the third.
func (n Node) Z() uint8 { return uint8(n) }

// String returns the form "2.0.1".
func (n Node) String() string { return fmt.Sprintf("%d.%d.%d", n.X(), n.Y(), n.Z()) }

// ParseNode reads the form of String; false for any other text of a place, and for what is none.
func ParseNode(s string) (Node, bool) {
	var x, y, z uint8
	_, err := fmt.Sscanf(s, "%d.%d.%d", &x, &y, &z)
	n := MakeNode(x, y, z)
	return n, err == nil && n.String() == s
}

// MakeID names a target, of which 24 bits count, of a node.
func MakeID(n Node, target uint32) ID {
	return 1<<idNodeShift | ID(n.X())<<idXShift | ID(n.Y())<<idYShift | ID(n.Z())<<idZShift | LocalID(target)
}

// LocalID names a target, of which 24 bits count, of the device that is asked.
func LocalID(target uint32) ID { return ID(target%ChannelsMax) << idTargetShift }

// Node returns the node's coordinates; false if the ID is local.
func (id ID) Node() (Node, bool) {
	return MakeNode(uint8(id>>idXShift), uint8(id>>idYShift), uint8(id>>idZShift)), id>>idNodeShift == 1
}

// Target returns the target's number on its node.
func (id ID) Target() uint32 { return uint32(id >> idTargetShift % ChannelsMax) }

// Valid reports whether every bit is zero that is to be.
func (id ID) Valid() bool {
	n, there := id.Node()
	if !there {
		return id == LocalID(id.Target())
	}
	return id == MakeID(n, id.Target())
}

// String returns "2.0.1/1042", or "1042" for a local target.
func (id ID) String() string {
	if n, there := id.Node(); there {
		return fmt.Sprintf("%v/%d", n, id.Target())
	}
	return fmt.Sprint(id.Target())
}
