package sim

import (
	"fmt"
	"runtime"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/firmware"
)

// defaultSpin is zero on a single processor, where spinning only delays the
// other side (P8).
func defaultSpin() time.Duration {
	if runtime.NumCPU() == 1 {
		return 0
	}
	return 25 * time.Microsecond
}

func init() {
	bridge.RegisterCheck("sim", func(a bridge.Address) error {
		_, _, err := parse(a)
		return err
	})
}

// stallOption is the one option that the host keeps for itself.
const stallOption = "stall-timeout"

// stallLimits are those of stallOption. No call is meant to wait for a year.
var stallLimits = bridge.Limits[time.Duration]{Min: time.Millisecond, Max: 365 * 24 * time.Hour}

// parse reads the options of a "sim:" address. Errors wrap bridge.ErrOption
// for an unknown name and bridge.ErrInvalid for a value that cannot be. stall is
// how long a transfer may stand still, 0 for the default.
func parse(a bridge.Address) (c firmware.Config, stall time.Duration, err error) {
	c = firmware.Config{Spin: defaultSpin(), Runs: 1, Eager: abi.EagerEntries, LogFD: -1}
	if a.Path != "" {
		return c, 0, fmt.Errorf("sim takes no path: %w", bridge.ErrInvalid)
	}
	if err := a.Only(append(firmware.Options(), stallOption)...); err != nil {
		return c, 0, err
	}
	if err := a.Duration(stallOption, &stall, stallLimits); err != nil {
		return c, 0, err
	}
	return c, stall, c.Parse(a)
}
