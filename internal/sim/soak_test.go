package sim

import (
	"flag"
	"testing"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
)

var (
	faults = flag.Int("faults", 2000, "faults that TestSoak provokes")
	calls  = flag.Int("calls", 10_000, "calls that TestChaos makes")
)

// TestSoak: whatever ends calls, nothing is lost, doubled or changed. A campaign
// is -faults 100000.
func TestSoak(t *testing.T) { bridgetest.Soak(t, openVerified, *faults) }

// TestSoakRepeats: the same while rounds repeat, with several engines.
func TestSoakRepeats(t *testing.T) {
	bridgetest.Soak(t, func(t *testing.T, options string) bridge.Device {
		return openVerified(t, options+"&engines=2&busy=5")
	}, *faults/4)
}

// TestChaos: whatever is called at the same time, nobody breaks the protocol. A
// campaign is -calls 1000000.
func TestChaos(t *testing.T) { bridgetest.Chaos(t, openVerified, *calls) }

// openVerified opens a device whose slots are verified.
func openVerified(t *testing.T, options string) bridge.Device {
	return spectest.Verified(t, openDevice(t, options))
}
