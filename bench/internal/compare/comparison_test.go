package compare

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlaces: each contender has a place in a round, and none always follows the same.
func TestPlaces(t *testing.T) {
	for n := 1; n <= 12; n++ {
		follows := make(map[[2]int]int)
		for r := range n {
			seen := make([]bool, n)
			for i := range n {
				c := placed(r, i, n)
				require.False(t, seen[c], "%d of %d, round %d", c, n, r)
				seen[c] = true
				if i > 0 {
					follows[[2]int{placed(r, i-1, n), c}]++
				}
			}
		}
		for pair, times := range follows {
			require.LessOrEqual(t, times, 1+n%2, "%v of %d", pair, n)
		}
	}
}
