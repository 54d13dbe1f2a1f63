package vfio

import (
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
)

// scheme is that of addresses of a function behind a socket.
const scheme = "vfio-user"

func init() {
	bridge.RegisterCheck(scheme, func(a bridge.Address) error {
		_, err := parse(a)
		return err
	})
}

// stallOption limits how long a transfer may stand still.
const stallOption = "stall-timeout"

// stallLimits are those of stallOption. No call is meant to wait for a year.
var stallLimits = bridge.Limits[time.Duration]{Min: time.Millisecond, Max: 365 * 24 * time.Hour}

// pathMost is the longest path of a UNIX socket.
const pathMost = 107

// options are those of an address.
type options struct {
	path  string
	stall time.Duration // 0: the default
}

// parse reads an address. Errors wrap bridge.ErrOption for an unknown name and
// bridge.ErrInvalid for a value that cannot be.
func parse(a bridge.Address) (options, error) {
	o := options{path: a.Path}
	if a.Path == "" {
		return o, fmt.Errorf("vfio-user takes the path of a socket, such as vfio-user:/run/nfsim/card.sock: %w", bridge.ErrInvalid)
	}
	if len(a.Path) > pathMost {
		return o, fmt.Errorf("path of %d bytes, at most %d: %w", len(a.Path), pathMost, bridge.ErrInvalid)
	}
	if err := a.Only(stallOption); err != nil {
		return o, err
	}
	return o, a.Duration(stallOption, &o.stall, stallLimits)
}
