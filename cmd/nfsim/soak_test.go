//go:build cgo

package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

var (
	strikesFlag = flag.Uint64("strikes", 300, "faults of a device that TestHostileSoak waits for")
	faultsFlag  = flag.Int("faults", 1000, "faults that the soaks of shm: and of a fabric provoke")
	callsFlag   = flag.Int("calls", 4000, "calls that their chaos makes")
)

// TestSharedSoak is that of package sim through memory that client and device share.
func TestSharedSoak(t *testing.T) { bridgetest.Soak(t, openSharedVerified, *faultsFlag) }

// TestSharedChaos is that of package sim.
func TestSharedChaos(t *testing.T) { bridgetest.Chaos(t, openSharedVerified, *callsFlag) }

// TestSoakOfNodes is that of package sim on a device whose node is another process.
func TestSoakOfNodes(t *testing.T) { bridgetest.Soak(t, openOnNodes(t), *faultsFlag) }

// TestChaosOfNodes is that of package sim.
func TestChaosOfNodes(t *testing.T) { bridgetest.Chaos(t, openOnNodes(t), *callsFlag) }

// soakScripts strike again and again; a reset makes the device whole in between. Their stray writes
// stay beside the buffers: it is this process's memory.
var soakScripts = []string{
	"count@3+7", "early@2+9", "id@3+5", "epoch@2+3", "type@4+9", "channel@3+5", "length@4+9", "phase@5+11",
	"state@3+7", "direction@3+7", "reserved@2+5", "replay+3", "again@4+2", "drop@9+31", "garbage+4", "random@2+5",
	"scribble+2", "overreach+2", "irq-dup+1", "irq-drop@3+5",
}

// TestHostileSoak: as TestHostileDevice, with chance and for long. A campaign is
// -strikes 100000.
func TestHostileSoak(t *testing.T) {
	bridgetest.LeakCheck(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var struck, calls uint64
	for struck < *strikesFlag {
		script := soakScripts[r.IntN(len(soakScripts))]
		t.Run(script, func(t *testing.T) {
			by, times := soakScript(t, script, r.Uint64N(1<<32))
			struck += by
			calls += times
		})
	}
	t.Logf("%d faults struck while %d talks ran", struck, calls)
}

// soakScript talks to a device that follows a script, with a reset whenever a
// talk ended early. It returns how often the script struck and how often they
// talked.
func soakScript(t *testing.T, script string, seed uint64) (struck, talks uint64) {
	t.Logf("seed %d", seed)
	m := attach(t, "--script", script, "--seed", fmt.Sprint(seed), "--beat", "10ms", "--window", "4", "--slots", "32")
	dev := m.open(t)
	reaches := strings.HasPrefix(script, "overreach")
	for range 25 {
		out, in := newGuarded(20_000), newGuarded(20_000)
		err := talk(t, dev, out, in, brief/10)
		requireNamed(t, err)
		talks++
		require.True(t, reaches || out.intact() && in.intact(), "bytes outside of a buffer changed")
		if err != nil {
			requireNamed(t, dev.Reset(context.Background()))
		}
	}
	return m.hostile.Struck(), talks
}
