//go:build linux

package soak

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

// TestSoakRing: a round of each fault: nothing is lost, nothing is wrong, and the next round
// begins. The last round draws its faults.
func TestSoakRing(t *testing.T) {
	s := &soakedRing{o: &options{}}
	b := Books{Seed: 3, Faults: make(map[string]uint64)}
	chance := rand.New(rand.NewPCG(b.Seed, 0))
	for i, fault := range []string{faultWriter, faultReader, faultCreator, faultClose} {
		require.NoError(t, s.play(t.Context(), &b, chance, fault, i%2 == 0, 10*time.Millisecond))
		require.Empty(t, b.First)
		b.Rounds++
	}
	require.Equal(t, map[string]uint64{faultWriter: 1, faultReader: 1, faultCreator: 1, faultClose: 1, faultFrozen: 2}, b.Faults)
	require.NoError(t, s.round(t.Context(), &b, chance, 10*time.Millisecond))
	require.Empty(t, b.First)
	require.NoError(t, s.close())
	require.Zero(t, b.Losses+b.Wrong)
	require.Greater(t, b.Bytes, 12*b.Operations)
}

// TestSoakGoesOn: a second run continues the books of the first, and one whose time
// is over does no more than say so.
func TestSoakGoesOn(t *testing.T) {
	state := filepath.Join(t.TempDir(), "soak.json")
	soak := func(address string, ms int) (r Report) {
		clitest.Decode(t, clitest.MustRun(t, "--address", address, "--duration", strconv.Itoa(ms)+"ms", "--every", "40ms", "--state", state, "--output", "json"), &r)
		require.Zero(t, r.Books.Losses+r.Books.Wrong)
		return r
	}
	first := soak("sim:", 1)
	require.Positive(t, first.Books.Rounds)
	require.Equal(t, first.Books.Rounds, faultsOf(&first.Books))
	require.Contains(t, first.Books.Stopped, "the time is over after round 1")
	second := soak("sim:", int(first.Books.Seconds*1e3)+1)
	require.Greater(t, second.Books.Rounds, first.Books.Rounds)
	require.Equal(t, first.Books.Operations+second.Operations, second.Books.Operations)
	var saved Books
	text, err := os.ReadFile(state)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &saved))
	require.Equal(t, second.Books, saved)

	code, _, errs := clitest.Run(t.Context(), "--address", soakRing, "--state", state)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "has the books of sim:, not of ring:")
	require.NoError(t, os.WriteFile(state, []byte("{"), 0o600))
	code, _, errs = clitest.Run(t.Context(), "--state", state)
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "read books of")
}

// TestSoakFindsWhatIsWrong: a packet and an exchange that were spoilt are found, and
// the exit code says so.
func TestSoakFindsWhatIsWrong(t *testing.T) {
	for address, says := range map[string]string{
		soakRing: "has another sum", "sim:": "came back changed", "sim:?torus=2x1x1": "came back changed",
	} {
		code, out, errs := clitest.Run(t.Context(), "--address", address, "--duration", "1h", "--every", "300ms", "--spoil", "20")
		require.Equal(t, cli.ExitFailed, code)
		require.Contains(t, out, "stopped: ")
		require.Contains(t, errs, says)
		require.Regexp(t, "0 lost, [1-9][0-9]* wrong", errs) // each client of a fabric may find one
	}
	b := Books{}
	(&soakedRing{}).count(&b, soakEnd{Operations: 5}, 7)
	require.Equal(t, "2 packets lost", b.First)
	(&soakedRing{}).count(&b, soakEnd{Operations: 8}, 7)
	require.EqualValues(t, 1, b.Wrong)
	require.Equal(t, "packet 3 has 4 bytes", soakCheck(make([]byte, 4), 3))
	require.Equal(t, "packet 3 says it is 0", soakCheck(make([]byte, 40), 3))
}

// TestSoakFabric: rounds over a fabric whose links break one word in 1,000 in each way, and by
// joints of its nodes, until links were cut and nodes killed, with and without a hang-up:
// nothing is lost or wrong.
func TestSoakFabric(t *testing.T) {
	s := &soakedFabric{o: &options{joints: true}, address: "sim:?torus=2x2x1&errors=1e-3"}
	b := Books{Seed: 5, Faults: make(map[string]uint64)}
	for b.Faults[faultCut] == 0 || b.Faults[faultNode] == 0 || b.Faults[faultSilent] == 0 || b.Operations < 200 {
		require.NoError(t, s.round(t.Context(), &b, rand.New(rand.NewPCG(b.Seed, b.Rounds)), 20*time.Millisecond))
		require.Empty(t, b.First)
		b.Rounds++
	}
	require.NoError(t, s.close())
	require.Zero(t, b.Losses+b.Wrong)
	require.Greater(t, b.Bytes, b.Operations)
	require.Len(t, b.Noticed, 4, "each fault, by hosts and by joints")
	for what, n := range b.Noticed {
		require.Positive(t, n.Losses, what)
		require.GreaterOrEqual(t, n.MostMs, n.MeanMs, what)
	}
}

// TestSoakFindsWhatJointsSpoil: what comes back changed by a joint is found. Nothing is broken
// meanwhile: nobody is there who would make a node's device anew.
func TestSoakFindsWhatJointsSpoil(t *testing.T) {
	s := &soakedFabric{o: &options{joints: true}, address: "sim:?torus=2x1x1"}
	require.NoError(t, s.open(t.Context()))
	s.parties = slices.DeleteFunc(s.parties, func(p *soakedParty) bool { return p.joint == nil })
	require.Len(t, s.parties, 2)
	for _, p := range s.parties {
		e, err := p.begin(t.Context(), &soakJob{Seed: 1, Spoil: 20})
		require.NoError(t, err)
		p.end = e.run(t.Context(), nil)
	}
	b := Books{Faults: make(map[string]uint64)}
	s.books(t.Context(), &b, nil)
	require.EqualValues(t, 2, b.Wrong)
	require.Contains(t, b.First, "joint of ")
	require.Contains(t, b.First, "came back changed")
	require.NoError(t, s.close())
}

// TestSoakInterrupted: the user's interrupt ends the round in good order, with a
// report.
func TestSoakInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, out, errs := clitest.Run(ctx, "--address", soakRing, "--duration", "1h", "--every", "1h")
	require.Equal(t, cli.ExitOK, code, errs)
	require.Contains(t, out, "stopped: interrupted after round 1")
}

func TestSoakBadInput(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"--duration", "0s", "--duration 0s is not a positive time"},
		{"--every", "1us", "--every 1µs is less than a millisecond"},
		{"--clients", "65", "--clients 65 is not 1 to 64"},
		{"--address", "nowhere", "nowhere"},
		{"--device", "nfsim", "--device is the command of a process that serves a shm: address"},
	} {
		code, _, errs := clitest.Run(t.Context(), c.flag, c.value)
		require.NotEqual(t, cli.ExitOK, code)
		require.Contains(t, errs, c.says)
	}
}

func faultsOf(b *Books) (n uint64) {
	for _, of := range b.Faults {
		n += of
	}
	return n
}

// TestSoakShared: in every state a client dies, or its device does, or is stopped or told to
// end; nobody loses anything, and the device keeps nothing.
func TestSoakShared(t *testing.T) {
	program, path := clitest.BuildDevice(t), filepath.Join(t.TempDir(), "s")
	device, err := newSoaked(program + " --shm " + path)
	require.NoError(t, err)
	s := &soakedDevice{o: &options{clients: 2}, address: "shm:" + path, device: device}
	b := Books{Seed: 7, Faults: make(map[string]uint64)}
	faults := []string{faultDevice, faultClient, faultEnded, faultStood}
	for i, state := range slices.Sorted(maps.Keys(soakStates)) {
		require.NoError(t, s.play(t.Context(), &b, soakedRound{fault: faults[i%len(faults)], state: state}, 10*time.Millisecond))
		require.Empty(t, b.First)
		b.Rounds++
	}
	require.NoError(t, s.close())
	require.Zero(t, b.Losses+b.Wrong)
	require.Positive(t, b.Operations)
	require.Equal(t, b.Rounds, faultsOf(&b))

	code, _, errs := clitest.Run(t.Context(), "--address", s.address, "--device", program+" --shm /no/such/folder/s")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "does not say that it listens: nfsim: ")
}
