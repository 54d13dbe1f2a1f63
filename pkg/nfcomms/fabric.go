package nfcomms

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
)

// fabric is the fabric of a device whose back end is a [bridge.FabricNode]; it gives errors their
// context.
type fabric struct{ dev *Device }

// bridge returns the fabric of the back end.
func (f fabric) bridge() bridge.Fabric { return f.dev.dev.(bridge.FabricNode).Fabric() }

// at is the address of the device of another node.
func (f fabric) at(n FabricPlace) string { return fmt.Sprintf("%s node %v", f.dev.address, n) }

func (f fabric) State(ctx context.Context) (FabricState, error) {
	do := func() (FabricState, error) { return f.bridge().State(ctx) }
	s, err := behind(ctx, &f.dev.late, do, nil)
	return s, f.dev.fail(opFabricState, 0, err)
}

func (f fabric) Route(ctx context.Context, from, to FabricPlace) ([]FabricHop, error) {
	do := func() ([]FabricHop, error) { return f.bridge().Route(ctx, from, to) }
	hops, err := behind(ctx, &f.dev.late, do, nil)
	return hops, f.dev.fail(opRoute, 0, err)
}

func (f fabric) Device(ctx context.Context, n FabricPlace) (bridge.Device, error) {
	do := func() (bridge.Device, error) { return f.bridge().Device(ctx, n) }
	dev, err := behind(ctx, &f.dev.late, do, nil) // all callers share it
	return dev, f.dev.fail(opOpen, 0, err)
}

// change makes a call that changes the fabric. It is not taken back where it ends late.
func (f fabric) change(ctx context.Context, op string, do func() error) error {
	_, err := behind(ctx, &f.dev.late, func() (struct{}, error) { return struct{}{}, do() }, nil)
	return f.dev.fail(op, 0, err)
}

func (f fabric) CutLink(ctx context.Context, n FabricPlace, link int, cut bool) error {
	return f.change(ctx, opCutLink, func() error { return f.bridge().CutLink(ctx, n, link, cut) })
}

func (f fabric) KillNode(ctx context.Context, n FabricPlace, dead bool) error {
	return f.change(ctx, opKillNode, func() error { return f.bridge().KillNode(ctx, n, dead) })
}

func (f fabric) SilenceNode(ctx context.Context, n FabricPlace) error {
	return f.change(ctx, opSilenceNode, func() error { return f.bridge().SilenceNode(ctx, n) })
}

func (f fabric) TestLink(ctx context.Context, n FabricPlace, link int, words uint64) (LinkTest, error) {
	do := func() (LinkTest, error) { return f.bridge().TestLink(ctx, n, link, words) }
	tested, err := behind(ctx, &f.dev.late, do, nil)
	return tested, f.dev.fail(opTestLink, 0, err)
}

func (f fabric) Put(ctx context.Context, to FabricWindow, offset uint64, data []byte) error {
	return f.dev.fail(opPut, 0, f.bridge().Put(ctx, to, offset, data))
}

func (f fabric) Get(ctx context.Context, from FabricWindow, offset uint64, buf []byte) error {
	return f.dev.fail(opGet, 0, f.bridge().Get(ctx, from, offset, buf))
}

func (f fabric) Window(ctx context.Context, mem []byte, access WindowAccess) (HostWindow, error) {
	do := func() (HostWindow, error) { return f.bridge().Window(ctx, mem, access) }
	w, err := behind(ctx, &f.dev.late, do, HostWindow.Revoke)
	return w, f.dev.fail(opWindow, 0, err)
}
