package search

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModels searches each model with small bounds, and one of its broken variants. "make spec"
// searches with larger ones, and all variants.
func TestModels(t *testing.T) {
	for _, m := range Models() {
		t.Run(m.Name, func(t *testing.T) {
			require.GreaterOrEqual(t, len(m.Broken), 3, "broken variants")
			if m.Whole {
				return
			}
			for p := range properties {
				f, err := m.Search(p, m.Defines, nil)
				require.NoError(t, err)
				require.Empty(t, f.Error, "%s", f.Chart)
				t.Logf("%s: %d states, depth %d, %v", properties[p].name, f.States, f.Depth, f.Processor)
			}
			f, err := m.Refute(&m.Broken[0])
			require.NoError(t, err)
			require.NotEmpty(t, f.Chart)
		})
	}
}

// TestSearchesEnd: a search that prints no result, or whose bound is too small, is an error.
func TestSearchesEnd(t *testing.T) {
	_, err := parse([]byte("pan: out of memory\n"))
	require.ErrorContains(t, err, "did not end")
	_, err = parse([]byte("error: max search depth too small\nState-vector 8 byte, depth reached 99, errors: 0\n 7 states, stored\n"))
	require.EqualError(t, err, "the bound of the search is exceeded: max search depth too small, after 7 states")
	m := Models()[0]
	_, err = m.Refute(&Broken{Name: "no change"})
	require.ErrorContains(t, err, "not refuted")
	_, err = m.Refute(&Broken{Name: "a row that is not there", Device: device(0, 0, 255, nil)})
	require.ErrorContains(t, err, "no row is like that")
}

// TestCheck: rows of any table that contradict each other are an error of one line.
func TestCheck(t *testing.T) {
	require.NoError(t, Check())
	for _, twice := range []func(*tables){
		func(r *tables) { r.host = append(r.host, r.host[0]) },
		func(r *tables) { r.device = append(r.device, r.device[0]) },
		func(r *tables) { r.ends = append(r.ends, r.ends[0]) },
		func(r *tables) { r.wholes = append(r.wholes, r.wholes[0]) },
		func(r *tables) { r.dial = append(r.dial, r.dial[0]) },
		func(r *tables) { r.moves = append(r.moves, r.moves[0]) },
	} {
		rows := newTables()
		twice(rows)
		err := rows.check()
		require.ErrorContains(t, err, "two transitions: ")
		require.NotContains(t, err.Error(), "\n")
	}
}
