package sim

import (
	"fmt"
	"runtime"
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

func init() {
	bridge.RegisterCheck("sim", func(a bridge.Address) error {
		_, err := parse(a)
		return err
	})
}

// parse reads the options of a "sim:" address. Errors wrap bridge.ErrOption
// for an unknown name and bridge.ErrInvalid for a value that cannot be read.
func parse(a bridge.Address) (shape, error) {
	s := shape{count: make(map[string]int), spin: defaultSpin()}
	if a.Path != "" {
		return s, fmt.Errorf("sim takes no path: %w", bridge.ErrInvalid)
	}
	if err := a.Only(known()...); err != nil {
		return s, err
	}
	for _, name := range counts {
		n := 0
		if err := a.Count(name, &n); err != nil {
			return s, err
		}
		s.count[name] = n
	}
	for kind, name := range memories {
		if err := a.Size(name, &s.memory[kind]); err != nil {
			return s, err
		}
	}
	if err := a.Size("stack", &s.stack); err != nil {
		return s, err
	}
	for name, to := range map[string]*time.Duration{"beat": &s.beat, "target-timeout": &s.expire, "spin": &s.spin} {
		if err := a.Duration(name, to); err != nil {
			return s, err
		}
	}
	return s, nil
}
