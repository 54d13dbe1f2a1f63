//go:build !linux

package vfio

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
)

func init() {
	bridge.Register(userScheme, open)
	bridge.Register(kernelScheme, open)
}

// open returns what this system lacks.
func open(context.Context, bridge.Address, *bridge.Options) (bridge.Device, error) {
	return nil, fmt.Errorf("PCI functions in user space need Linux: %w", bridge.ErrNotSupported)
}
