package papers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTorus: a formula of sides is what counting the ways of all nodes gives, in one to five dimensions.
func TestTorus(t *testing.T) {
	for _, sides := range [][]int{{1}, {2}, {7}, {4, 3}, {4, 4, 2}, {3, 2, 5, 2}, {4, 2, 3, 2, 5}} {
		got := TorusOf(sides...)
		sum, most, nodes := 0, 0, 1
		for _, n := range sides {
			nodes *= n
		}
		for to := range nodes { // from node 0: a torus looks alike from each
			hops, rest := 0, to
			for _, n := range sides {
				at := rest % n
				rest /= n
				hops += min(at, n-at)
			}
			sum, most = sum+hops, max(most, hops)
		}
		require.Equal(t, nodes, got.Nodes, sides)
		require.Equal(t, most, got.MostHops, sides)
		require.InDelta(t, float64(sum)/float64(max(1, nodes-1)), got.MeanHops, 1e-9, sides)
	}
	require.Equal(t, []int{0, 1, 2, 2 * 16, 2 * 16}, []int{
		TorusOf(1).Bisection, TorusOf(2).Bisection, TorusOf(3).Bisection, TorusOf(4, 8, 4).Bisection, TorusOf(2, 2, 2, 2, 4).Bisection,
	})
}
