//go:build cgo

package kdev

import (
	"context"
	"errors"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/umod"
)

// The scheme "umod" is a device of a module of its own, over "sim:", for tests of other packages.
func init() {
	bridge.Register("umod", func(ctx context.Context, a bridge.Address, _ *bridge.Options) (bridge.Device, error) {
		dev, err := bridge.Open(ctx, "sim:?"+a.Options.Encode(), nil)
		if err != nil {
			return nil, err
		}
		m := moduleOver(dev, umod.Options{})
		d, err := tryOpen(over{m.open()}, "")
		if err != nil {
			return nil, errors.Join(err, m.Close())
		}
		return d, nil
	})
}
