//go:build cgo

package hostile

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/scripted"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// TestLiesRepeat: the same seed makes the same of the same messages.
func TestLiesRepeat(t *testing.T) {
	lies := func(seed uint64) (all [][]wire.Slot) {
		p, err := Parse("random@2+3")
		require.NoError(t, err)
		l := &epoch{dev: New(p, seed, scripted.Shape{}, Effects{}, slog.New(slog.DiscardHandler))}
		for i := range uint64(100) {
			var m wire.Slot
			m.Header = uint64(wire.MakeHeader(wire.TypeAck, abi.PayloadSize, 1, uint16(i), 3))
			*m.Ack() = wire.Ack{Transaction: i, Processed: 8, State: wire.StateConsumed}
			all = append(all, l.give(m))
		}
		require.NotZero(t, l.dev.Struck())
		return all
	}
	require.Equal(t, lies(3), lies(3))
	require.NotEqual(t, lies(3), lies(4))
}
