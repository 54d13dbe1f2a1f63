package kdev

import (
	"flag"
	"testing"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

var (
	faults = flag.Int("faults", 2000, "faults that TestSoak provokes")
	calls  = flag.Int("calls", 10_000, "calls that TestChaos makes")
)

// TestSoak is that of package sim. A campaign is -faults 100000.
func TestSoak(t *testing.T) { bridgetest.Soak(t, openVerified(t, 100), *faults) }

// TestChaos is that of package sim. A campaign is -calls 1000000.
func TestChaos(t *testing.T) { bridgetest.Chaos(t, openVerified(t, 100), *calls) }
