package mailbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// TestBegunEndsWithoutSpins: polls find the end of what was begun where calls do not spin, as on one
// processor, and nobody sleeps, so that no doorbell rings.
func TestBegunEndsWithoutSpins(t *testing.T) {
	f := newFake(t)
	hello := f.area.DeviceHello.Hello()
	hello.Capabilities, hello.Eager = hello.Capabilities|wire.CapEager, wire.EagerEntries
	ch := f.subscribe(f.open())
	ch.send.spin.full, ch.recv.spin.full = 0, 0
	data := make([]byte, 100)
	polls := func(d abi.Direction, end func(wait bool) (bool, error)) {
		f.expect(fakeMailbox, wire.TypeEager)
		ended, err := end(false)
		require.False(t, ended, "%v", err)
		t.Cleanup(func() { // else Close waits for it
			if !ended {
				_, _ = end(true)
			}
		})
		f.ack(wire.TypeAck, wire.Ack{Transaction: 1, Processed: 100, State: wire.StateConsumed, Direction: uint32(d)})
		f.until("the transfer ends", func() bool {
			ended, err = end(false)
			return ended
		})
		require.NoError(t, err)
	}
	require.True(t, ch.BeginSendInd(t.Context(), data))
	polls(abi.H2D, func(wait bool) (bool, error) { return ch.EndSendInd(t.Context(), data, wait) })
	require.True(t, ch.BeginReceiveInd(t.Context(), data))
	polls(abi.D2H, func(wait bool) (bool, error) { return ch.EndReceiveInd(t.Context(), data, wait) })
}
