//go:build cgo

package mesh

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPingsOfMany: neighbours that are pinged at once by more nodes than there is room for, each
// by way of the other, answer all of them.
func TestPingsOfMany(t *testing.T) {
	const side, count = 32, 500
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a watchdog
	defer cancel()
	c := quick(side, 1, 1)
	c.Depth = 512
	m := open(t, c)
	target := func(i int) int { // of the first half the end of the second one
		if i > 0 && i <= side/2 {
			return 0
		}
		return 1
	}
	answered := make(chan error, side)
	for i := range side {
		go func() {
			_, err := m.Ping(ctx, i, target(i), PacketMax, count)
			answered <- err
		}()
	}
	for range side {
		require.NoError(t, <-answered)
	}
}
