//go:build !linux

package shm

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
)

func init() { bridge.Register("shm", open) }

// open returns what this system lacks.
func open(context.Context, bridge.Address, *bridge.Options) (bridge.Device, error) {
	return nil, fmt.Errorf("devices behind shared memory need Linux: %w", bridge.ErrNotSupported)
}
