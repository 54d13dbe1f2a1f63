//go:build linux

package ring

import (
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLitmusCompiled: the heads of the report, volatile and without order, fail as
// soon as a compiler knows where the packet is; those of the SYNC points do not
// (H16).
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

// What a processor may do, for TestLitmusModelled: a memory that all see alike,
// and threads that run their accesses in an order that the model allows.
const (
	inOrder = iota // sequential consistency
	x86            // a load may pass stores before it
	relaxed        // as arm64: any access may pass any other but for what it says
)

// access is one of a thread: of the first packet or the words of a head.
type access struct {
	store        bool
	word         string
	value        int    // stored
	into         string // loaded
	rel, acq     bool
	fence        bool // nothing passes it, and it accesses nothing
	afterABranch bool // on what was loaded before: a store waits for that
}

// mayPass reports whether b, later in the program, may run before a.
func mayPass(model int, a, b access) bool {
	switch {
	case model == inOrder, a.fence, b.fence, a.word == b.word:
		return false
	case model == x86:
		return a.store && !b.store
	}
	return !a.acq && !b.rel && !(b.store && b.afterABranch && !a.store)
}

// outcomes runs threads in every order that the model allows, and returns what
// they may load, "name=value" in the order of names.
func outcomes(model int, threads [][]access) []string {
	seen := make(map[string]bool)
	var run func(done []uint, memory, loaded map[string]int)
	run = func(done []uint, memory, loaded map[string]int) {
		finished := true
		for at, thread := range threads {
			for i, a := range thread {
				if done[at]&(1<<i) != 0 || !ready(model, thread, done[at], i) {
					continue
				}
				finished = false
				d, m, l := slices.Clone(done), maps.Clone(memory), maps.Clone(loaded)
				d[at] |= 1 << i
				if a.store {
					m[a.word] = a.value
				} else if !a.fence {
					l[a.into] = m[a.word]
				}
				run(d, m, l)
			}
		}
		if finished {
			var text []string
			for _, name := range slices.Sorted(maps.Keys(loaded)) {
				text = append(text, name+"="+strconv.Itoa(loaded[name]))
			}
			seen[strings.Join(text, " ")] = true
		}
	}
	run(make([]uint, len(threads)), map[string]int{}, map[string]int{})
	return slices.Sorted(maps.Keys(seen))
}

// ready reports whether access i may run: all before it have, or let it pass.
func ready(model int, thread []access, done uint, i int) bool {
	for j := range i {
		if done&(1<<j) == 0 && !mayPass(model, thread[j], thread[i]) {
			return false
		}
	}
	return true
}

// TestLitmusModelled: each SYNC point of the ring is needed on some processor. The
// positions need none on x86, which is why the report found so; parking does.
func TestLitmusModelled(t *testing.T) {
	type litmus struct {
		name    string
		threads func(rel, acq, fence bool) [][]access
		bad     string
		drop    map[string][3]bool // what is left out: whether bad is possible in order, on x86, relaxed
	}
	for _, l := range []litmus{
		{"a packet is there once the position says so", func(rel, acq, _ bool) [][]access {
			return [][]access{
				{{store: true, word: "packet", value: 1}, {store: true, word: "writer", value: 1, rel: rel}},
				{{word: "writer", into: "position", acq: acq}, {word: "packet", into: "packet"}},
			}
		}, "packet=0 position=1", map[string][3]bool{"": {}, "release": {relaxed: true}, "acquire": {relaxed: true}}},
		{"a packet is read before its room is given back", func(rel, acq, _ bool) [][]access {
			return [][]access{
				{{word: "packet", into: "packet"}, {store: true, word: "reader", value: 1, rel: rel}},
				{{word: "reader", into: "position", acq: acq}, {store: true, word: "packet", value: 2, afterABranch: true}},
			}
		}, "packet=2 position=1", map[string][3]bool{"": {}, "release": {relaxed: true}, "acquire": {}}},
		{"who sleeps is woken", func(rel, acq, fence bool) [][]access {
			between := []access{{fence: true}}
			if !fence {
				between = nil
			}
			return [][]access{
				append(append([]access{{store: true, word: "parked", value: 1}}, between...), access{word: "writer", into: "position", acq: acq}),
				append(append([]access{{store: true, word: "writer", value: 1, rel: rel}}, between...), access{word: "parked", into: "parked", acq: acq}),
			}
		}, "parked=0 position=0", map[string][3]bool{"": {}, "fence": {x86: true, relaxed: true}}},
	} {
		for without, possible := range l.drop {
			for model, want := range possible {
				got := outcomes(model, l.threads(without != "release", without != "acquire", without != "fence"))
				require.Equal(t, want, slices.Contains(got, l.bad), "%s, without %q, model %d: %v", l.name, without, model, got)
			}
		}
	}
}
