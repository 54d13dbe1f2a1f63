package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAccessNS: means of cycles at the paper's clock, at the slowest, and without one.
func TestAccessNS(t *testing.T) {
	for i, want := range [][3]int{{62, 37_500, 0}, {125, 75_000, 0}, {333, 200_000, 0}, {541, 325_000, 0}} {
		require.Equal(t, want, [3]int{Memories[i].AccessNS(600), Memories[i].AccessNS(1), Memories[i].AccessNS(0)})
	}
}
