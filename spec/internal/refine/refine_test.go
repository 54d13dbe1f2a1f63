package refine

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// process makes a process of lines "STATE EVENT STATE", tau for Tau; it begins in the first one.
func process(t *testing.T, lines string) *Process {
	t.Helper()
	all := strings.Split(lines, "; ")
	p, err := Explore(strings.Fields(all[0])[0], func(s string, do func(Event, string)) {
		for _, l := range all {
			w := strings.Fields(l)
			if len(w) != 3 || w[0] != s {
				continue
			}
			if w[1] == "tau" {
				w[1] = ""
			}
			do(Event(w[1]), w[2])
		}
	}, 1000)
	require.NoError(t, err)
	return p
}

// TestKnown: refinements and non-refinements of the textbook, by model.
func TestKnown(t *testing.T) {
	for _, c := range []struct {
		name, spec, process string
		holds               [3]bool
	}{
		{"itself", "p a q; q b p", "p a q; q b p", [3]bool{true, true, true}},
		{"STOP does nothing wrong, but refuses", "p a p", "stop", [3]bool{true, false, false}},
		{"another event", "p a p", "p b p", [3]bool{}},
		{"one event more", "p a p", "p a p; p b p", [3]bool{}},
		{"an external choice for an internal one", "p tau q; p tau r; q a p; r b p", "p a p; p b p", [3]bool{true, true, true}},
		{"an internal choice for an external one", "p a p; p b p", "p tau q; p tau r; q a p; r b p", [3]bool{true, false, false}},
		{"one side of an internal choice", "p tau q; p tau r; q a p; r b p", "p a p", [3]bool{true, true, true}},
		{"a choice made after the first event", "p a q; q b p; q c p", "p a q; p a r; q b p; r c p", [3]bool{true, false, false}},
		{"a process that only diverges is never stable", "p a p", "p tau p", [3]bool{true, true, false}},
		{"divergence after an event", "p a p", "p a q; q tau r; r tau q; q a p", [3]bool{true, true, false}},
		{"a specification that diverges allows all in one model", "p tau p; p a p", "p b p", [3]bool{false, false, true}},
		{"what is unseen and ends", "p a p", "p tau q; q a r; r tau p", [3]bool{true, true, true}},
	} {
		for m, want := range c.holds {
			_, err := Refines(process(t, c.spec), process(t, c.process), Model(m))
			require.Equal(t, want, err == nil, "%s, model %d: %v", c.name, m, err)
		}
	}
}

// TestCounterexample: it has the trace, and why.
func TestCounterexample(t *testing.T) {
	_, err := Refines(process(t, "p a q; q b p"), process(t, "p a q; q tau r; r c p"), Failures)
	require.EqualError(t, err, "after <a>: it offers only [c], not one of [[b]]")
	_, err = Refines(process(t, "p a q; q b p"), process(t, "p a q; q tau r; r c p"), Traces)
	require.EqualError(t, err, "after <a>: it does c")
}

// TestBuffers: two places in a row are a buffer of two, and not of one; a channel between hides.
func TestBuffers(t *testing.T) {
	left, right := process(t, "e in f; f mid e"), process(t, "e mid f; f out e")
	mid := func(e Event) bool { return e == "mid" }
	both, err := Parallel(left, right, mid, 100)
	require.NoError(t, err)
	row := Hide(both, mid)
	two := process(t, "n in o; o out n; o in t; t out o")
	_, err = Refines(two, row, FailuresDivergences)
	require.NoError(t, err)
	_, err = Refines(row, two, FailuresDivergences)
	require.NoError(t, err)
	_, err = Refines(process(t, "n in o; o out n"), row, Traces)
	require.EqualError(t, err, "after <in>: it does in")
	_, err = Parallel(left, right, func(Event) bool { return false }, 3)
	require.ErrorContains(t, err, "more than 3 states")
}
