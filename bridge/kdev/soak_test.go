package kdev

import (
	"flag"
	"testing"

	"github.com/nfcomms/nfcomms/bridge/bridgetest"
)

var faults = flag.Int("faults", 2000, "faults that TestSoak provokes")

// TestSoak is that of package sim. A campaign is -faults 100000.
func TestSoak(t *testing.T) { bridgetest.Soak(t, opener(t), *faults) }
