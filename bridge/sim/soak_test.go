package sim

import (
	"flag"
	"testing"

	"github.com/nfcomms/nfcomms/bridge/bridgetest"
)

var faults = flag.Int("faults", 2000, "faults that TestSoak provokes")

// TestSoak: whatever ends calls, nothing is lost, doubled or changed. A campaign
// is -faults 100000.
func TestSoak(t *testing.T) { bridgetest.Soak(t, openDevice, *faults) }
