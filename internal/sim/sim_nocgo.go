//go:build !cgo

package sim

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
)

func init() { bridge.Register("sim", open) }

// open checks the address, then says what this build lacks.
func open(_ context.Context, a bridge.Address, _ *bridge.Options) (bridge.Device, error) {
	if _, err := parse(a); err != nil {
		return nil, err
	}
	return nil, missing
}

// missing is what this build lacks.
var missing = fmt.Errorf("the firmware is C: build with CGO_ENABLED=1 and a C compiler (gcc or clang): %w",
	bridge.ErrNotSupported)
