package sim

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// shape is what the options of an address say; zero fields mean the default.
type shape struct {
	count  map[string]int
	memory [abi.MemoryCount]uint64
	stack  uint64
	beat   time.Duration
	expire time.Duration
	spin   time.Duration
}

var (
	counts   = []string{"managers", "islands", "microengines", "contexts", "channels", "slots", "window", "engines"}
	memories = [abi.MemoryCount]string{abi.CLS: "cls", abi.CTM: "ctm", abi.IMEM: "imem", abi.EMEM: "emem"}
)

func known() []string {
	names := append([]string{"stack", "beat", "target-timeout", "spin"}, counts...)
	return append(names, memories[:]...)
}

// defaultSpin is zero on a single processor, where spinning only delays the
// other side (P8).
func defaultSpin() time.Duration {
	if runtime.NumCPU() == 1 {
		return 0
	}
	return 25 * time.Microsecond
}

// parse reads the options of a "sim:" address. Errors wrap bridge.ErrOption
// for an unknown name and bridge.ErrInvalid for a value that cannot be read.
func parse(a bridge.Address) (shape, error) {
	s := shape{count: make(map[string]int), spin: defaultSpin()}
	if a.Path != "" {
		return s, fmt.Errorf("address %q: sim takes no path: %w", a, bridge.ErrInvalid)
	}
	if err := a.Only(known()...); err != nil {
		return s, err
	}
	for _, name := range counts {
		if err := option(a, name, func(v string) (err error) {
			s.count[name], err = positive(v)
			return err
		}); err != nil {
			return s, err
		}
	}
	for kind, name := range memories {
		if err := size(a, name, &s.memory[kind]); err != nil {
			return s, err
		}
	}
	if err := size(a, "stack", &s.stack); err != nil {
		return s, err
	}
	for name, to := range map[string]*time.Duration{"beat": &s.beat, "target-timeout": &s.expire, "spin": &s.spin} {
		if err := duration(a, name, to); err != nil {
			return s, err
		}
	}
	return s, nil
}

// option reads one value, if it is there, and says which one it could not read.
func option(a bridge.Address, name string, read func(string) error) error {
	if !a.Options.Has(name) {
		return nil
	}
	value := a.Options.Get(name)
	if err := read(value); err != nil {
		return fmt.Errorf("address %q: option %s=%s: %w: %w", a, name, value, bridge.ErrInvalid, err)
	}
	return nil
}

func positive(v string) (int, error) {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("want a count like 8")
	}
	return int(n), nil
}

func duration(a bridge.Address, name string, to *time.Duration) error {
	return option(a, name, func(v string) error {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return fmt.Errorf("want a duration like 100ms")
		}
		*to = d
		return nil
	})
}

func size(a bridge.Address, name string, to *uint64) error {
	return option(a, name, func(v string) (err error) {
		*to, err = parseSize(v)
		return err
	})
}

// parseSize reads bytes with an optional unit: 4096, 64KiB, 6GiB.
func parseSize(v string) (uint64, error) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if number, ok := strings.CutSuffix(v, unit); ok {
			v, shift = number, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseUint(v, 10, 63-shift)
	if err != nil {
		return 0, fmt.Errorf("want a size like 64KiB or 6GiB")
	}
	return n << shift, nil
}
