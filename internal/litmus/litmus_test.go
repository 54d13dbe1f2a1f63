package litmus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOutcomes: two threads that store and then look see too little on any processor but one in
// order.
func TestOutcomes(t *testing.T) {
	look := [][]Access{
		{{Store: true, Word: "a", Value: 1}, {Word: "b", Into: "b"}},
		{{Store: true, Word: "b", Value: 1}, {Word: "a", Into: "a"}},
	}
	require.Equal(t, []string{"a=0 b=1", "a=1 b=0", "a=1 b=1"}, Outcomes(InOrder, look))
	require.Contains(t, Outcomes(X86, look), "a=0 b=0")
	require.Contains(t, Outcomes(Relaxed, look), "a=0 b=0")
}

// TestWrong: a test that says something else than what is so is found.
func TestWrong(t *testing.T) {
	test := Test{Name: "stores", Threads: func(With) [][]Access {
		return [][]Access{{{Store: true, Word: "a", Value: 1}, {Store: true, Word: "b", Value: 1}}, {{Word: "b", Into: "b", Acq: true}, {Word: "a", Into: "a"}}}
	}, Bad: "a=0 b=1", Drop: map[string][]Model{"": nil}}
	require.Len(t, test.Wrong(), 1)
	test.Drop[""] = []Model{Relaxed}
	require.Empty(t, test.Wrong())
}
