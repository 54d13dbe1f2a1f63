package nodes

import (
	"context"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// unless makes a call of the torus, unless ctx has ended.
func unless[T any](ctx context.Context, call func() (T, error)) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, &bridge.WithdrawnError{Cause: err}
	}
	return call()
}

// do is unless for a call without a result.
func do(ctx context.Context, call func() error) error {
	_, err := unless(ctx, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// State returns the view of the own node.
func (f *fabric) State(ctx context.Context) (bridge.FabricState, error) {
	return unless(ctx, f.Torus.State)
}

// Route returns the way between two nodes.
func (f *fabric) Route(ctx context.Context, from, to abi.Node) ([]bridge.FabricHop, error) {
	return unless(ctx, func() ([]bridge.FabricHop, error) { return f.Torus.Route(from, to) })
}

// CutLink cuts a link, or mends it.
func (f *fabric) CutLink(ctx context.Context, n abi.Node, link int, cut bool) error {
	return do(ctx, func() error { return f.Torus.CutLink(n, link, cut) })
}

// KillNode ends a node, or starts it anew.
func (f *fabric) KillNode(ctx context.Context, n abi.Node, dead bool) error {
	return do(ctx, func() error { return f.Torus.KillNode(n, dead) })
}

// SilenceNode ends a node whose links do not hang up.
func (f *fabric) SilenceNode(ctx context.Context, n abi.Node) error {
	return do(ctx, func() error { return f.Torus.SilenceNode(n) })
}
