package mailbox

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// TestMapFails: a buffer that the device cannot reach ends a call before anything is put, and leaves
// what the device offers where it is.
func TestMapFails(t *testing.T) {
	f, _, c := setup(t)
	ctx := context.Background()
	data := pages(100)
	f.noMap = bridge.ErrNoMemory
	require.ErrorIs(t, c.SendInd(ctx, data), bridge.ErrNoMemory)
	_, err := c.TrySendInd(ctx, data, nil)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.Nil(t, f.poll(fakeMailbox))

	f.begin(1, 100)
	require.ErrorIs(t, c.ReceiveInd(ctx, data), bridge.ErrNoMemory)
	require.ErrorIs(t, c.ReceiveIndFunc(ctx, 100, func() ([]byte, error) { return data, nil }, nil), bridge.ErrNoMemory)
	require.Nil(t, f.poll(fakeMailbox))

	f.noMap = nil
	wait := f.async(func() error { return c.ReceiveInd(ctx, data) })
	f.expect(fakeMailbox, wire.TypeIndList)
	require.EqualValues(t, 1, f.mapped.Load())
	f.ack(wire.TypeDone, done(1, abi.D2H, 100))
	f.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())
	require.Zero(t, f.mapped.Load())
}
