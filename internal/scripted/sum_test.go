package scripted

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// sumSize is of two lists.
const sumSize = wire.ListEntries*abi.PageSize + 100

// TestCorrupt: a transfer whose device has other bytes than the host is not committed on either side,
// and counted; the channel goes on.
func TestCorrupt(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    abi.Direction
		call func(r *rig, ch bridge.Channel, b []byte) error
	}{
		{"SendInd", abi.H2D, func(r *rig, ch bridge.Channel, b []byte) error { return ch.SendInd(r.Ctx(), b) }},
		{"ReceiveInd", abi.D2H, func(r *rig, ch bridge.Channel, b []byte) error { return ch.ReceiveInd(r.Ctx(), b) }},
		{"ReceiveIndFunc", abi.D2H, func(r *rig, ch bridge.Channel, b []byte) error {
			return ch.ReceiveIndFunc(r.Ctx(), sumSize, func() ([]byte, error) { return b, nil },
				func([]byte) error { t.Error("the function sees wrong bytes"); return nil })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, Shape{})
			ch := r.Subscribe(r.dev, abi.TargetLoopback)
			b := make([]byte, sumSize)
			pattern.Fill(b, 0, 1)
			if tt.d == abi.D2H {
				require.NoError(r, ch.SendInd(r.Ctx(), b))
			}
			require.NoError(r, ch.(interface{ Verify(on bool) error }).Verify(true))
			r.s.SetHooks(Hooks{Give: nth(0, recordOf(wire.TypeDone, tt.d), func(m wire.Slot) []wire.Slot {
				m.Ack().FaultIndex ^= 1
				return []wire.Slot{m}
			})})
			err := tt.call(r, ch, b)
			require.ErrorIs(r, err, bridge.ErrCorrupt)
			require.ErrorIs(r, err, bridge.ErrDMA)
			var stopped *bridge.TransferError
			require.ErrorAs(r, err, &stopped)
			require.Equal(r, uint64(sumSize), stopped.Processed)
			require.EqualValues(r, 1, ch.Stats().Corrupt)
			require.NoError(r, ch.Close())
			r.recovers()
		})
	}
}

// TestVerify: a device without checksums, or one that computes none, has none to compare.
func TestVerify(t *testing.T) {
	r := newRig(t, Shape{Eager: wire.EagerEntries})
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	verifier := ch.(interface{ Verify(on bool) error })
	lists := func() uint64 {
		before := ch.Stats().Lists
		r.EchoInd(ch, 100, 3)
		return ch.Stats().Lists - before
	}
	require.Zero(r, lists(), "eager transfers")
	require.NoError(r, verifier.Verify(true))
	require.EqualValues(r, 2, lists(), "by lists: the host has the last word")
	require.NoError(r, verifier.Verify(false))
	require.Zero(r, lists())

	old := newRig(t, Shape{NoSums: true})
	ch = old.Subscribe(old.dev, abi.TargetLoopback)
	require.ErrorIs(r, ch.(interface{ Verify(on bool) error }).Verify(true), bridge.ErrNotSupported)
	require.NoError(r, ch.(interface{ Verify(on bool) error }).Verify(false))
	old.EchoInd(ch, sumSize, 5)
}
