package kdev

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestCardOfADevice: with -kdev, the card is the one of docs/device-spec.md, and its
// registers are reached once that is switched on. Without, the fake's device is none.
func TestCardOfADevice(t *testing.T) {
	if *devices == "" {
		dev := opener(t)(t, "")
		defer dev.Close()
		require.Nil(t, dev.Info().Board)
		return
	}
	address, _, _ := strings.Cut(*devices, ",")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dev, err := bridge.Open(ctx, address, nil)
	require.NoError(t, err)
	defer dev.Close()
	b := dev.Info().Board
	require.NotNil(t, b)
	require.Equal(t, [2]uint16{0x1234, 0x4e46}, [2]uint16{b.Vendor, b.Device})
	require.Regexp(t, `^0000:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`, b.Address)
	require.Positive(t, b.Vectors)
	require.Len(t, b.Bars, 3)
	require.Equal(t, bridge.Bar{Kind: bridge.BarMemory32, Address: b.Bars[0].Address, Size: 4096}, b.Bars[0])
	require.Equal(t, bridge.Bar{Number: 2, Kind: bridge.BarMemory64, Prefetchable: true, Address: b.Bars[2].Address, Size: 64 << 20}, b.Bars[2])

	card := dev.(bridge.RegisterAccess)
	_, err = card.Peek(0, 0, 4)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	attribute := "/sys/class/nfcomms/nfcomms" + strings.TrimPrefix(address, "dev:") + "/register_access"
	require.NoError(t, os.WriteFile(attribute, []byte("1"), 0))
	defer func() { require.NoError(t, os.WriteFile(attribute, []byte("0"), 0)) }()
	id, err := card.Peek(0, 0, 4)
	require.NoError(t, err)
	require.EqualValues(t, 0x314d434e, id)
	_, err = card.Peek(0, 4096, 4)
	require.ErrorIs(t, err, bridge.ErrRange)
	require.ErrorIs(t, card.Poke(0, 0x14, 4, 1), bridge.ErrBusy)
	_, err = card.Interrupts(b.Vectors)
	require.ErrorIs(t, err, bridge.ErrInvalid)
	count, err := card.Interrupts(0)
	require.NoError(t, err)
	require.NoError(t, dev.Reset(ctx))
	later, err := card.WaitInterrupt(ctx, 0, count)
	require.NoError(t, err)
	require.Greater(t, later, count)
	require.NoError(t, card.SwitchInterrupt(0, false))
	count, err = card.Interrupts(0)
	require.NoError(t, err)
	require.NoError(t, dev.Reset(ctx))
	later, err = card.Interrupts(0)
	require.NoError(t, err)
	require.Equal(t, count, later, "it is held back")
	require.NoError(t, card.SwitchInterrupt(0, true))
	_, err = card.WaitInterrupt(ctx, 0, count)
	require.NoError(t, err)
}
