//go:build linux

package ring

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/litmus"
)

// TestLitmusCompiled: the heads of the report, volatile and without order, fail as
// soon as a compiler knows where the packet is; those of the SYNC points do not.
func TestLitmusCompiled(t *testing.T) {
	source, err := filepath.Abs("../../kmod/lib/test/ring_litmus.c")
	require.NoError(t, err)
	for _, level := range []string{"-O0", "-O1", "-O2", "-O3"} {
		for _, heads := range []string{"-DSYNC", "-DVOLATILE"} {
			program := filepath.Join(t.TempDir(), "litmus")
			out, err := exec.Command("gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", level, heads,
				"-pthread", "-o", program, source).CombinedOutput()
			require.NoError(t, err, "gcc (install it with: apt-get install gcc libc6-dev): %s", out)
			for _, side := range []string{"write", "read"} {
				says, err := exec.CommandContext(background(t), program, side).Output()
				require.NoError(t, err)
				switch {
				case heads == "-DSYNC":
					require.Equal(t, "right\n", string(says), "%s %s %s", level, heads, side)
				case level != "-O0":
					require.Contains(t, string(says), "was wrong", "%s %s %s", level, heads, side)
				case runtime.GOARCH == "amd64": // nothing is moved: the luck of the report
					require.Equal(t, "right\n", string(says), "%s %s %s", level, heads, side)
				}
			}
		}
	}
}

// TestLitmusModelled: each SYNC point of the ring is needed on some processor. The
// positions need none on x86, which is why the report found so; parking does.
func TestLitmusModelled(t *testing.T) {
	for _, l := range []litmus.Test{
		{Name: "a packet is there once the position says so", Threads: func(w litmus.With) [][]litmus.Access {
			return [][]litmus.Access{
				{{Store: true, Word: "packet", Value: 1}, {Store: true, Word: "writer", Value: 1, Rel: w.Rel}},
				{{Word: "writer", Into: "position", Acq: w.Acq}, {Word: "packet", Into: "packet"}},
			}
		}, Bad: "packet=0 position=1", Drop: map[string][]litmus.Model{"": nil, "release": {litmus.Relaxed}, "acquire": {litmus.Relaxed}}},
		{Name: "a packet is read before its room is given back", Threads: func(w litmus.With) [][]litmus.Access {
			return [][]litmus.Access{
				{{Word: "packet", Into: "packet"}, {Store: true, Word: "reader", Value: 1, Rel: w.Rel}},
				{{Word: "reader", Into: "position", Acq: w.Acq}, {Store: true, Word: "packet", Value: 2, AfterABranch: true}},
			}
		}, Bad: "packet=2 position=1", Drop: map[string][]litmus.Model{"": nil, "release": {litmus.Relaxed}, "acquire": nil}},
		{Name: "who sleeps is woken", Threads: func(w litmus.With) [][]litmus.Access {
			return [][]litmus.Access{
				litmus.Between(w.Fence, litmus.Access{Store: true, Word: "parked", Value: 1}, litmus.Access{Word: "writer", Into: "position", Acq: w.Acq}),
				litmus.Between(w.Fence, litmus.Access{Store: true, Word: "writer", Value: 1, Rel: w.Rel}, litmus.Access{Word: "parked", Into: "parked", Acq: w.Acq}),
			}
		}, Bad: "parked=0 position=0", Drop: map[string][]litmus.Model{"": nil, "fence": {litmus.X86, litmus.Relaxed}}},
	} {
		require.Empty(t, l.Wrong())
	}
}
