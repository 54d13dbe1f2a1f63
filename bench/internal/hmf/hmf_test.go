//go:build linux

package hmf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

var tinyHMF = []string{"--size", "7", "--packages", "4", "--package", "25", "--packet", "8KiB"}

func hmf(test string, args ...string) []string {
	return append(append([]string{"hmf", test}, tinyHMF...), args...)
}

func TestHMFOne(t *testing.T) {
	peers, names := "unix,pipe", []string{"UNIX socket", "os.Pipe"}
	if !raceDetector { // the library races with itself when a session closes
		peers, names = peers+",shmipc", append(names, "shmipc-go")
	}
	for _, c := range []struct {
		flags []string
		peers []string
	}{
		{[]string{"--verify", "full", "--access", "copy", "--wait", "park", "--peers", peers}, names},
		{[]string{"--verify", "flag", "--access", "place", "--wait", "yield", "--lazy", "--peers", ""}, nil},
		{[]string{"--verify", "full", "--batch", "6", "--peers", peers}, names},
	} {
		var r Report
		clitest.Decode(t, clitest.MustRun(t, hmf("one", append(c.flags, "--rounds", "2", "--output", "json")...)...), &r)
		require.Equal(t, "hmf one", r.Command)
		require.Len(t, r.Rows, 2+len(c.peers))
		for i, name := range c.peers {
			require.Equal(t, name, r.Rows[2+i].Name)
			require.Equal(t, uint64(2*3*25), r.Rows[2+i].Verified)
			require.Positive(t, r.Rows[2+i].NetKiB)
		}
		require.Positive(t, r.Rows[0].FirstPacketUS)
		require.Equal(t, uint64(2*3*25), r.Rows[0].Verified, "the first packages are checked as well")
		require.InEpsilon(t, r.Rows[0].GrossKiB*7/8, r.Rows[0].NetKiB, 1e-9)
		require.Positive(t, r.Rows[0].CPUS)
		require.Equal(t, compare.NameMemcpy, r.Rows[1].Name)
		require.Positive(t, r.VsMemcpy.Median)
		require.Equal(t, 7570350.0, r.Paper[0].NetKiB)
	}
}

func TestHMFMulti(t *testing.T) {
	svg, dat := filepath.Join(t.TempDir(), "h.svg"), filepath.Join(t.TempDir(), "h.dat")
	out := clitest.MustRun(t, hmf("multi", "--pairs", "1,2", "--plot", svg, "--dat", dat)...)
	for _, want := range []string{"one pair", "2 pairs", "6 pairs (the report)", "154.304", "more pairs carry more together", "no device"} {
		require.Contains(t, out, want)
	}
	text, err := os.ReadFile(dat)
	require.NoError(t, err)
	require.Contains(t, string(text), "2_pairs\t2\t7\t8192\t")
	text, err = os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(text), "2 pairs")
}

func TestHMFSweepAndInit(t *testing.T) {
	var r Report
	clitest.Decode(t, clitest.MustRun(t, hmf("sweep", "--sizes", "3,7,11", "--packets", "4KiB,8KiB", "--payload", "1KiB", "--output", "json")...), &r)
	require.Len(t, r.Rows, 6)
	require.Len(t, r.Findings, 2)
	clitest.Decode(t, clitest.MustRun(t, hmf("init", "--sizes", "3,61", "--repeat", "2", "--output", "json")...), &r)
	require.Len(t, r.Rows, 4)
	for i, name := range []string{"init", "again", "init", "again"} {
		require.Equal(t, name, r.Rows[i].Name)
		require.Equal(t, []int{3, 61}[i/2], r.Rows[i].Ring)
		require.Positive(t, r.Rows[i].MS.Mean)
	}
}

// TestHMFFindsAWrongByte: a byte that the generator spoils fails the test where
// every byte is compared, and is nobody's business where it is not.
func TestHMFFindsAWrongByte(t *testing.T) {
	o := Options{
		Ring: 7, Packet: 8 << 10, Payload: 7 << 10, Packages: 2, PerPackage: 20,
		Verify: "full", Access: "place", Wait: "park", Spoil: 33,
	}
	_, err := o.PairsAtOnce(t.Context(), 1, 7, 8<<10, "spoilt")
	require.EqualError(t, err, "1 of 60 packets are wrong: packet 33 differs")
	o.Verify = "flag"
	_, err = o.PairsAtOnce(t.Context(), 1, 7, 8<<10, "spoilt")
	require.NoError(t, err)
	j := hmfJob{Payload: 16, Full: true}
	require.Contains(t, j.wrong(make([]byte, 8), 0, nil), "8 bytes in place of 16")
	require.Contains(t, j.wrong([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, nil), "packet 0 says it is 1")
}

// TestHMFGoals: packets of 8 KiB in place and those of 56 bytes have a goal, what
// else is measured has none.
func TestHMFGoals(t *testing.T) {
	o := Options{Verify: "flag", Access: "place", Packet: 8 << 10, Payload: 7 << 10}
	require.Equal(t, cli.ResultReached, o.goals(stat.Spread{Median: 0.9}, nil, "")[0].Result)
	require.Equal(t, "missed by 11 %", o.goals(stat.Spread{Median: 0.8}, nil, "")[0].Result)
	o.Payload = compare.MessageSize
	require.InDelta(t, 1024e3/56, o.goals(stat.Spread{}, &Row{NetKiB: 1e9}, "")[0].Value, 1e-6)
	o.Verify = "full"
	require.Empty(t, o.goals(stat.Spread{}, nil, ""))
}

// TestHMFChildFails: an end of one process ends the pair, with its reason.
func TestHMFChildFails(t *testing.T) {
	_, err := runPair(t.Context(), hmfJob{Ring: "no-such-ring", Payload: 64, Packages: 1, Package: 1, Wait: "park", Spoil: -1}, nil)
	require.ErrorContains(t, err, "no such ring")
	name := fmt.Sprintf("hmf-%d-fails", os.Getpid())
	r, err := ring.Create(name, ring.Config{})
	require.NoError(t, err)
	defer r.Close()
	_, err = runPair(t.Context(), hmfJob{Ring: name, Payload: 1 << 20, Packages: 1, Package: 1, Wait: "park", Spoil: -1}, nil)
	require.ErrorContains(t, err, "packet too large")
}

func TestHMFBadInput(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{hmf("one", "--packet", "5000"), "--packet 5000 is not a multiple of the page"},
		{hmf("one", "--payload", "9KiB"), "--payload 9216 is not 8 to 8128 bytes"},
		{hmf("one", "--rounds", "0"), "--rounds 0 is not 1 to 4"},
		{hmf("one", "--packages", "0"), "must be at least 1"},
		{hmf("one", "--verify", "some"), `--verify "some" is neither flag nor full`},
		{hmf("one", "--access", "none"), `--access "none" is neither place nor copy`},
		{hmf("one", "--peers", "carrier-pigeon"), `--peers "carrier-pigeon" is none of unix, pipe, shmipc, openmpi, openmpi-ssend, ucx, iceoryx2`},
		{hmf("one", "--build", "O9"), `--build "O9" is none of O0, O1, O2, O3`},
		{hmf("one", "--batch", "0"), "--batch 0 is not 1 to 1000"},
		{hmf("one", "--wait", "long"), `--wait "long" is none of`},
		{[]string{"hmf", "one", "--size", "2"}, `"2" is no number of packets, at least 3`},
		{hmf("multi", "--pairs", "0"), "--pairs 0 is not 1 to 64"},
		{hmf("sweep", "--sizes", "2"), "2 packets: a ring has at least 3"},
		{hmf("sweep", "--packets", "1KiB"), "--packet 1024 is not a multiple of the page"},
		{hmf("init", "--repeat", "0"), "--repeat 0 is less than 1"},
	} {
		code, _, errs := clitest.Run(t.Context(), c.args...)
		require.NotEqual(t, cli.ExitOK, code, c.args)
		require.Contains(t, errs, c.says)
	}
}

func TestHMFNativePeers(t *testing.T) {
	t.Setenv("PATH", clitest.FakeToolchain(t, clitest.FakePeer))
	var h Report
	clitest.Decode(t, clitest.MustRun(t, hmf("one", "--rounds", "2", "--peers", strings.Join(compare.NativeNames(), ","), "--output", "json")...), &h)
	require.Empty(t, h.NotMeasured)
	require.Len(t, h.Rows, 2+len(compare.NativeLibraries))
	for i, l := range compare.NativeLibraries {
		row := h.Rows[2+i]
		require.Equal(t, l.Name+" in C", row.Name)
		require.Equal(t, uint64(2*3*25), row.Verified)
		require.Equal(t, 4, row.MS.N)
		require.InDelta(t, 1e-3, row.MS.Mean, 1e-9, "milliseconds")
	}
}

// TestNativeRing: the ring in C, built twice, is a real peer of both kinds: it echoes,
// answers and streams, and every byte of it is compared.
func TestNativeRing(t *testing.T) {
	var r Report
	clitest.Decode(t, clitest.MustRun(t, hmf("one", "--rounds", "1", "--peers", "", "--build", "O0,O3", "--verify", "full", "--access", "copy", "--output", "json")...), &r)
	require.Empty(t, r.NotMeasured)
	require.Len(t, r.Rows, 4)
	require.Len(t, r.Findings, 1)
	for i, build := range []string{"O0", "O3"} {
		require.Equal(t, "ring in C, -"+build, r.Rows[2+i].Name)
		require.Equal(t, uint64(5*25), r.Rows[2+i].Verified)
	}
	o := Options{Ring: 7, Packet: 8 << 10, Payload: 7 << 10, Packages: 2, PerPackage: 5, Verify: "full", Access: "copy"}
	rows, missing, err := o.Builds(t.Context(), "O1")
	require.NoError(t, err)
	require.Empty(t, missing)
	require.Equal(t, "ring in C, -O1", rows[0].Name)
	require.Equal(t, uint64(3*5), rows[0].Verified)
	require.InEpsilon(t, rows[0].GrossKiB*7/8, rows[0].NetKiB, 1e-9)
	o = Options{builds: []string{"O1"}}
	p := o.natives(t.Context())[0]
	require.Empty(t, p.Missing)
	defer p.Remove()
	for _, kind := range []string{"echo", "take"} {
		run, err := p.Run(t.Context(), 2, kind, 5000, compare.NativeSlots, 4, 10, 0, 0, 0)
		require.NoError(t, err)
		require.Len(t, run.Batches, 4)
		require.Positive(t, slices.Min(run.Batches))
		require.GreaterOrEqual(t, run.Used, run.CPU/2, "both are of the same processes")
	}
	run, err := p.Run(t.Context(), 2, "echo", 64, compare.NativeSlots, 1<<30, 1, 1, 0, 0)
	require.NoError(t, err, "a millisecond is over long before so many batches")
	require.NotEmpty(t, run.Batches)
	_, err = p.Run(t.Context(), 2, "echo", 7, compare.NativeSlots, 1, 1, 0, 0, 0)
	require.ErrorContains(t, err, "SIZE is at least 8")
}
