package fabric

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/internal/over"
)

// Types of the bridge contract that describe a fabric.
type (
	// Fabric is a torus of nodes, as one of them knows it.
	Fabric = bridge.Fabric
	// Place is the place of a node; [At] and [Parse] make one.
	Place = abi.Node
	// State is a fabric at one moment.
	State = bridge.FabricState
	// Hop is a step of a route.
	Hop = bridge.FabricHop
	// Window names memory at a node that others put to and get from.
	Window = bridge.FabricWindow
	// HostWindow is memory of this process that others put to and get from.
	HostWindow = bridge.HostWindow
	// Access is what others may do with a window.
	Access = bridge.WindowAccess
	// LinkTest is the result of a test of a link.
	LinkTest = bridge.LinkTest
)

// Kinds of access to a window; both may be given.
const (
	Read  = bridge.WindowRead  // get from it
	Write = bridge.WindowWrite // put to it
)

// Of returns the fabric that a device is a node of; nil if there is none.
func Of(dev *nfcomms.Device) Fabric { return over.Of(dev).Fabric }

// At returns the place of the node at three coordinates.
func At(x, y, z uint8) Place { return abi.MakeNode(x, y, z) }

// Parse reads a place as it is written: "2.0.1". ErrInvalid for another text.
func Parse(text string) (Place, error) {
	n, ok := abi.ParseNode(text)
	if !ok {
		return 0, fmt.Errorf("node %q: %w: want x.y.z, each 0..255", text, nfcomms.ErrInvalid)
	}
	return n, nil
}

// Target returns the id by which other nodes reach a target of a node.
func Target(node Place, t nfcomms.Target) nfcomms.Target { return bridge.At(node, t) }

// Device returns the device of another node of a device's fabric, as this process reaches it:
// programs, health and counts are that node's. The first call for a node opens it, and it closes
// with dev. Each call returns a device of its own over the same connection: Close of it closes its
// channels and listeners. Its processes and regions last until the connection ends, with the last of
// these devices.
// ErrNotSupported if dev is in no fabric, ErrInvalid if there is no such node or it is dev's own,
// ErrDeviceLost if it does not answer.
func Device(ctx context.Context, dev *nfcomms.Device, node Place) (*nfcomms.Device, error) {
	far, err := over.Of(dev).Node(ctx, node)
	if err != nil {
		return nil, err
	}
	return far.(*nfcomms.Device), nil
}
