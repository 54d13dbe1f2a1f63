//go:build linux

package stack

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

// diesLater is a program that answers once.
const diesLater = "echo ready; read line; echo moved 1 2 3 4 5 6; read line; "

// TestStackNativeFails: the reason why a C path cannot be opened, crashes, or says nonsense is one
// line.
func TestStackNativeFails(t *testing.T) {
	for peer, says := range map[string]string{
		"echo no such device >&2; exit 1":       "no such device; libnfcomms-umod.so.1 is not installed and was not built: ",
		"echo hello":                            `printed "hello"; libnfcomms-umod.so.1 is not installed and was not built: `,
		diesLater + "kill -SEGV $$":             "signal: segmentation fault",
		diesLater + "echo send: closed >&2":     "send: closed",
		diesLater + "exit 0":                    "EOF",
		diesLater + "echo moved 1 2 3 much 4 5": `printed "moved 1 2 3 much 4 5"`,
		diesLater + "echo moved 0 1 2 3 4 5":    "moved nothing",
		diesLater + "echo loose 1 2 3 4 5 6":    `printed "loose 1 2 3 4 5 6"`,
	} {
		t.Setenv("PATH", clitest.FakeToolchain(t, peer))
		n := newStackNative(t.Context(), "sim:", 1, 8)
		for n.missing == "" {
			if _, _, _, err := n.move(Sync, 8, 1); err != nil {
				n.fail(err)
			}
		}
		require.Contains(t, n.missing, says)
		require.NotContains(t, n.missing, "\n")
		require.NoError(t, n.end())
		require.NoDirExists(t, n.program.Dir)
	}
}

// TestStackWithoutNative: where the C path fails on the way the Go path is measured.
func TestStackWithoutNative(t *testing.T) {
	t.Setenv("PATH", clitest.FakeToolchain(t, diesLater+"exit 0"))
	var r Report
	clitest.Decode(t, clitest.MustRun(t, append(tinyStack, "--output", "json")...), &r)
	require.Equal(t, "the C path: EOF", r.Absent[0])
	require.Contains(t, []int{8, 10}, len(r.Curves))
	require.Empty(t, r.Beside)
}

// TestStackNativeHangs: it is ended, and so is one that does not end by itself.
func TestStackNativeHangs(t *testing.T) {
	for peer, says := range map[string]string{
		"echo ready; exec /bin/sleep 1000":                       "said nothing for 300ms and was ended",
		"echo ready; exec >&-; read line; exec /bin/sleep 10000": "signal: killed",
	} {
		t.Setenv("PATH", clitest.FakeToolchain(t, peer))
		n := newStackNative(t.Context(), "dev:0", 1, 4096)
		require.Empty(t, n.missing)
		n.program.Limit = 300 * time.Millisecond
		_, _, _, err := n.move(Sync, 8, 1)
		require.EqualError(t, err, says)
		n.fail(err)
		require.NoError(t, n.end())
		require.NoDirExists(t, n.program.Dir)
	}
}

// TestStackBeside: the fastest test of each path, and the difference at the largest chunk is what
// counts.
func TestStackBeside(t *testing.T) {
	path := func(native *stackNative, ns ...float64) *stackPath {
		p := &stackPath{mode: Sync, memory: memoryHeap, native: native, points: map[int]*stackTimes{}}
		for i, size := range []int{4096, 1 << 20} {
			times := []float64{3 * ns[i] * 1e-9, ns[i] * 1e-9}
			p.points[size] = &stackTimes{wall: [2][]float64{times, times}, cpu: [2][]float64{times, times}}
		}
		return p
	}
	c := &stackNative{}
	rig := &stackRig{plan: Plan{Sizes: []int{4096, 1 << 20}}, paths: []*stackPath{path(nil, 1000, 100_000), path(c, 2000, 101_000)}}
	r := Report{Beside: rig.besideTable()}
	require.Len(t, r.Beside, 4)
	require.InDelta(t, 1000, r.Beside[0].GoNS, 1e-6)
	require.InDelta(t, 2000, r.Beside[0].CNS, 1e-6)
	findings := r.BesideFindings()
	require.Len(t, findings, 2)
	require.True(t, findings[0].Same)
	require.Equal(t, "4 KiB: C takes +100.0 %, 1 MiB: C takes +1.0 %", findings[0].Why)
	rig.paths[1] = path(c, 1000, 106_000)
	r.Beside = rig.besideTable()
	require.False(t, r.BesideFindings()[1].Same)
	c.fail(os.ErrClosed)
	require.Empty(t, rig.besideTable())
}
