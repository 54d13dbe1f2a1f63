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

func (f fabric) State() (FabricState, error) {
	s, err := f.bridge().State()
	return s, f.dev.fail(opFabricState, 0, err)
}

func (f fabric) Route(from, to FabricPlace) ([]FabricHop, error) {
	hops, err := f.bridge().Route(from, to)
	return hops, f.dev.fail(opRoute, 0, err)
}

func (f fabric) Device(ctx context.Context, n FabricPlace) (bridge.Device, error) {
	do := func() (bridge.Device, error) { return f.bridge().Device(ctx, n) }
	dev, err := behind(ctx, &f.dev.late, do, nil) // all callers share it
	return dev, f.dev.fail(opOpen, 0, err)
}

func (f fabric) CutLink(n FabricPlace, link int, cut bool) error {
	return f.dev.fail(opCutLink, 0, f.bridge().CutLink(n, link, cut))
}

func (f fabric) KillNode(n FabricPlace, dead bool) error {
	return f.dev.fail(opKillNode, 0, f.bridge().KillNode(n, dead))
}

func (f fabric) SilenceNode(n FabricPlace) error {
	return f.dev.fail(opSilenceNode, 0, f.bridge().SilenceNode(n))
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
