package sim

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// defaultSpin is zero on a single processor, where spinning only delays the
// other side.
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

// Options that the host keeps for itself.
const (
	stallOption = "stall-timeout"
	torusOption = "torus"
	errorOption = "errors"
)

// Limits of a torus in one process.
const (
	sideMax  = firmware.MeshSideMax
	nodesMax = firmware.MeshNodesMax
)

// errorsMax is the most of errorOption: with more a link is not up for long.
const errorsMax = 1e-3

// stallLimits are those of stallOption. No call is meant to wait for a year.
var stallLimits = bridge.Limits[time.Duration]{Min: time.Millisecond, Max: 365 * 24 * time.Hour}

// options are those of an address.
type options struct {
	shape firmware.Config // of each node
	stall time.Duration   // how long a transfer may stand still, 0 for the default
	torus [3]int          // nodes a side; zero: the device is no node of a fabric
	// errors is the part of words that each link flips, loses and doubles, each.
	errors float64
}

// parse reads the options of a "sim:" address. Errors wrap bridge.ErrOption
// for an unknown name and bridge.ErrInvalid for a value that cannot be.
func parse(a bridge.Address) (o options, err error) {
	o.shape = firmware.Config{Spin: defaultSpin(), Runs: 1, Eager: wire.EagerEntries, Lone: 1, LogFD: -1}
	if a.Path != "" {
		return o, fmt.Errorf("sim takes no path: %w", bridge.ErrInvalid)
	}
	if err := a.Only(append(firmware.Options(), stallOption, torusOption, errorOption)...); err != nil {
		return o, err
	}
	if err := a.Duration(stallOption, &o.stall, stallLimits); err != nil {
		return o, err
	}
	if a.Options.Has(torusOption) {
		if o.torus, err = parseTorus(a.Options.Get(torusOption)); err != nil {
			return o, err
		}
	}
	if a.Options.Has(errorOption) {
		if o.errors, err = parseErrors(a.Options.Get(errorOption), o.torus); err != nil {
			return o, err
		}
	}
	return o, o.shape.Parse(a)
}

// parseTorus reads "4x4x1".
func parseTorus(text string) (side [3]int, err error) {
	parts := strings.Split(text, "x")
	nodes := 1
	for i := range side {
		if len(parts) != len(side) {
			return side, badTorus(text)
		}
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 1 || n > sideMax || strconv.Itoa(n) != parts[i] {
			return side, badTorus(text)
		}
		side[i] = n
		nodes *= n
	}
	if nodes < 2 || nodes > nodesMax {
		return side, badTorus(text)
	}
	return side, nil
}

func badTorus(text string) error {
	return fmt.Errorf("option %s=%s: %w: want nodes in x, y and z as 4x4x1, 1..%d a side, 2..%d in all",
		torusOption, text, bridge.ErrInvalid, sideMax, nodesMax)
}

// parseErrors reads a part of words, of a device with links.
func parseErrors(text string, torus [3]int) (float64, error) {
	part, err := strconv.ParseFloat(text, 64)
	switch {
	case torus == [3]int{}:
		return 0, fmt.Errorf("option %s=%s: %w: there are no links without %s", errorOption, text, bridge.ErrInvalid, torusOption)
	case err != nil || !(part >= 0 && part <= errorsMax):
		return 0, fmt.Errorf("option %s=%s: %w: want 0..%g", errorOption, text, bridge.ErrInvalid, errorsMax)
	}
	return part, nil
}
