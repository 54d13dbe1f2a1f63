package sim

import (
	"fmt"
	"runtime"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
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
		_, err := parse(a)
		return err
	})
}

// parse reads the options of a "sim:" address. Errors wrap bridge.ErrOption
// for an unknown name and bridge.ErrInvalid for a value that cannot be.
func parse(a bridge.Address) (firmware.Config, error) {
	c := firmware.Config{Spin: defaultSpin(), LogFD: -1}
	if a.Path != "" {
		return c, fmt.Errorf("sim takes no path: %w", bridge.ErrInvalid)
	}
	if err := a.Only(firmware.Options()...); err != nil {
		return c, err
	}
	return c, c.Parse(a)
}
