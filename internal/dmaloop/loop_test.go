package dmaloop

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, address string) *nfcomms.Device {
	t.Helper()
	dev, err := nfcomms.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// TestVariants: each moves all there is, on a device with one island and with several.
func TestVariants(t *testing.T) {
	for _, address := range []string{"sim:", "sim:?islands=2&managers=2"} {
		dev := open(t, address)
		for v := range Variants {
			for _, o := range []Options{{8, 1, 1}, {4096, 20, 4}, {100_000, 7, 3}, {8, 3, 8}} {
				t.Run(fmt.Sprint(address, v, o), func(t *testing.T) {
					r, err := Run(t.Context(), dev, v, o)
					require.NoError(t, err)
					require.Equal(t, int64(o.Size)*int64(o.Transfers), r.Bytes)
					require.Equal(t, o.Transfers, r.Transfers)
					require.Positive(t, r.Rate())
				})
			}
		}
		require.Zero(t, dev.Stats().Channels, "nothing is left")
	}
}

func TestRefuses(t *testing.T) {
	dev := open(t, "sim:")
	for _, o := range []Options{{0, 1, 1}, {-8, 1, 1}, {7, 1, 1}, {8, 0, 1}, {8, 1, 0}} {
		_, err := Run(t.Context(), dev, Futures, o)
		require.ErrorIs(t, err, nfcomms.ErrInvalid, "%v", o)
	}
}

func TestInterrupted(t *testing.T) {
	dev := open(t, "sim:")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for v := range Variants {
		_, err := Run(ctx, dev, v, Options{4096, 4, 2})
		require.ErrorIs(t, err, context.Canceled, v)
	}
}

// TestNoRoom: a device that cannot hold a transfer refuses it, and nobody waits for it to come
// back.
func TestNoRoom(t *testing.T) {
	dev := open(t, "sim:?emem=1MiB")
	for v := range Variants {
		_, err := Run(t.Context(), dev, v, Options{4 << 20, 4, 2})
		require.ErrorIs(t, err, bridge.ErrRange, v)
	}
}

// liar changes one bit of what comes back.
type liar struct{ bridge.Device }

type lyingChannel struct{ bridge.Channel }

func (l liar) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	ch, err := l.Device.Subscribe(ctx, t)
	return lyingChannel{ch}, err
}

func (c lyingChannel) ReceiveInd(ctx context.Context, data []byte) error {
	err := c.Channel.ReceiveInd(ctx, data)
	data[4000] ^= 1
	return err
}

// TestMismatch: each variant finds a bit that was changed, and says where.
func TestMismatch(t *testing.T) {
	bridge.Register("dmaloop-liar", func(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
		dev, err := bridge.Open(ctx, "sim:", o)
		return liar{dev}, err
	})
	dev := open(t, "dmaloop-liar:")
	for v := range Variants {
		_, err := Run(t.Context(), dev, v, Options{4096, 5, 1})
		var wrong *MismatchError
		require.ErrorAs(t, err, &wrong, v)
		require.Equal(t, MismatchError{0, 4000, 500, 501}, *wrong)
		require.EqualError(t, wrong, "transfer 0 came back changed at byte 4000: 0x00000000000001f5, not 0x00000000000001f4")
	}
}
