package litmus

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Model is a kind of processor: a memory that all threads see alike, and threads that run their
// accesses in an order that the model allows. Release and acquire are those of C11.
type Model int

// The models.
const (
	InOrder Model = iota // sequential consistency
	X86                  // a load may pass stores before it
	Arm64                // an access may pass another but for its orders; an acquire does not pass a release
	RISCV                // RVWMO, with fences for release and acquire: an acquire may pass a release
)

func (m Model) String() string { return [...]string{"in order", "x86", "arm64", "RISC-V"}[m] }

// Access is one of a thread: of data, or of a word that says how it stands.
type Access struct {
	Store        bool
	Word         string
	Value        int    // stored
	Into         string // what is loaded is called
	Rel, Acq     bool   // what is before a release stays there, what is behind an acquire as well
	Fence        bool   // nothing passes it, and it accesses nothing
	AfterABranch bool   // on what was loaded before: a store waits for that
	Swap         bool   // it loads and stores at once
}

// mayPass reports whether b, later in the program, may run before a.
func (m Model) mayPass(a, b Access) bool {
	switch {
	case m == InOrder, a.Fence, b.Fence, a.Word == b.Word:
		return false
	case m == X86:
		return a.Store && !b.Store && !b.Swap
	case m == Arm64 && a.Rel && b.Acq:
		return false
	}
	return !a.Acq && !b.Rel && !(b.Store && b.AfterABranch && !a.Store)
}

// ready reports whether access i may run: all before it have, or let it pass.
func (m Model) ready(thread []Access, done uint, i int) bool {
	for j := range i {
		if done&(1<<j) == 0 && !m.mayPass(thread[j], thread[i]) {
			return false
		}
	}
	return true
}

// Outcomes runs threads in every order that the model allows, and returns what they may load,
// "name=value" in the order of names.
func Outcomes(m Model, threads [][]Access) []string {
	seen := make(map[string]bool)
	var run func(done []uint, memory, loaded map[string]int)
	run = func(done []uint, memory, loaded map[string]int) {
		finished := true
		for at, thread := range threads {
			for i, a := range thread {
				if done[at]&(1<<i) != 0 || !m.ready(thread, done[at], i) {
					continue
				}
				finished = false
				d, mem, l := slices.Clone(done), maps.Clone(memory), maps.Clone(loaded)
				d[at] |= 1 << i
				if a.Swap || !a.Store && !a.Fence {
					l[a.Into] = mem[a.Word]
				}
				if a.Swap || a.Store {
					mem[a.Word] = a.Value
				}
				run(d, mem, l)
			}
		}
		if finished {
			seen[text(loaded)] = true
		}
	}
	run(make([]uint, len(threads)), map[string]int{}, map[string]int{})
	return slices.Sorted(maps.Keys(seen))
}

func text(loaded map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(loaded)) {
		parts = append(parts, name+"="+strconv.Itoa(loaded[name]))
	}
	return strings.Join(parts, " ")
}

// With are the barriers that a Test keeps.
type With struct{ Rel, Acq, Fence bool }

// Test is a shape of accesses, and what no processor may let its threads load.
type Test struct {
	Name    string
	Threads func(w With) [][]Access
	Bad     string
	// Drop is, by the barrier that is left out ("", "release", "acquire" or "fence"), where
	// what is bad can come about.
	Drop map[string][]Model
}

// Wrong lists where a test does not end as it says.
func (t Test) Wrong() (found []string) {
	for without, where := range t.Drop {
		threads := t.Threads(With{Rel: without != "release", Acq: without != "acquire", Fence: without != "fence"})
		for m := InOrder; m <= RISCV; m++ {
			got := Outcomes(m, threads)
			if slices.Contains(got, t.Bad) != slices.Contains(where, m) {
				found = append(found, t.Name+", without "+strconv.Quote(without)+", "+m.String()+": "+strings.Join(got, "; "))
			}
		}
	}
	return found
}

// Between puts a full fence between two accesses, if it is there.
func Between(fence bool, a, b Access) []Access {
	if !fence {
		return []Access{a, b}
	}
	return []Access{a, {Fence: true}, b}
}
