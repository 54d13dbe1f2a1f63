package nfcomms

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// fabric is the fabric of a device whose back end is a [bridge.FabricNode]; it gives errors their
// context.
type fabric struct{ dev *Device }

// bridge returns the fabric of the back end.
func (f fabric) bridge() bridge.Fabric { return f.dev.dev.(bridge.FabricNode).Fabric() }

// at is the address of the device of another node.
func (f fabric) at(n abi.Node) string { return fmt.Sprintf("%s node %v", f.dev.address, n) }

func (f fabric) State(ctx context.Context) (bridge.FabricState, error) {
	do := func() (bridge.FabricState, error) { return f.bridge().State(ctx) }
	s, err := behind(ctx, &f.dev.late, do, nil)
	return s, f.dev.fail(opFabricState, 0, err)
}

func (f fabric) Route(ctx context.Context, from, to abi.Node) ([]bridge.FabricHop, error) {
	do := func() ([]bridge.FabricHop, error) { return f.bridge().Route(ctx, from, to) }
	hops, err := behind(ctx, &f.dev.late, do, nil)
	return hops, f.dev.fail(opRoute, 0, err)
}

func (f fabric) Device(ctx context.Context, n abi.Node) (bridge.Device, error) {
	do := func() (bridge.Device, error) { return f.bridge().Device(ctx, n) }
	dev, err := behind(ctx, &f.dev.late, do, nil) // all callers share it
	return dev, f.dev.fail(opOpen, 0, err)
}

// change makes a call that changes the fabric. It is not taken back where it ends late.
func (f fabric) change(ctx context.Context, op string, do func() error) error {
	_, err := behind(ctx, &f.dev.late, func() (struct{}, error) { return struct{}{}, do() }, nil)
	return f.dev.fail(op, 0, err)
}

func (f fabric) CutLink(ctx context.Context, n abi.Node, link int, cut bool) error {
	return f.change(ctx, opCutLink, func() error { return f.bridge().CutLink(ctx, n, link, cut) })
}

func (f fabric) KillNode(ctx context.Context, n abi.Node, dead bool) error {
	return f.change(ctx, opKillNode, func() error { return f.bridge().KillNode(ctx, n, dead) })
}

func (f fabric) SilenceNode(ctx context.Context, n abi.Node) error {
	return f.change(ctx, opSilenceNode, func() error { return f.bridge().SilenceNode(ctx, n) })
}

func (f fabric) TestLink(ctx context.Context, n abi.Node, link int, words uint64) (bridge.LinkTest, error) {
	do := func() (bridge.LinkTest, error) { return f.bridge().TestLink(ctx, n, link, words) }
	tested, err := behind(ctx, &f.dev.late, do, nil)
	return tested, f.dev.fail(opTestLink, 0, err)
}

func (f fabric) Put(ctx context.Context, to bridge.FabricWindow, offset uint64, data []byte) error {
	return f.dev.fail(opPut, 0, f.bridge().Put(ctx, to, offset, data))
}

func (f fabric) Get(ctx context.Context, from bridge.FabricWindow, offset uint64, buf []byte) error {
	return f.dev.fail(opGet, 0, f.bridge().Get(ctx, from, offset, buf))
}

func (f fabric) Window(ctx context.Context, mem []byte, access bridge.WindowAccess) (bridge.HostWindow, error) {
	do := func() (bridge.HostWindow, error) { return f.bridge().Window(ctx, mem, access) }
	w, err := behind(ctx, &f.dev.late, do, bridge.HostWindow.Revoke)
	return w, f.dev.fail(opWindow, 0, err)
}

// fabric returns the fabric that the device is a node of; nil if there is none.
func (d *Device) fabric() bridge.Fabric {
	if n, ok := d.dev.(bridge.FabricNode); ok && n.Fabric() != nil {
		return fabric{d}
	}
	return nil
}

// node returns the device of another node of the fabric, see fabric.Device.
func (d *Device) node(ctx context.Context, n abi.Node) (*Device, error) {
	f := fabric{d}
	if d.fabric() == nil {
		return nil, wrap(opOpen, f.at(n), 0, fmt.Errorf("no fabric: %w", ErrNotSupported))
	}
	dev, err := f.Device(ctx, n)
	if err != nil {
		return nil, err
	}
	shared := newDevice(dev, f.at(n))
	shared.shared = true
	return shared, nil
}
