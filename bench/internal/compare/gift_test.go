//go:build linux

package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestGifts has another process give memory back, send messages back and say what it used.
func TestGifts(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), clitest.StartDevice(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	g, err := StartGifts(t.Context(), dev)
	require.NoError(t, err)
	gift, err := g.Gift(64 << 10)
	require.NoError(t, err)
	for _, c := range []*Contender{g.Echo(), gift} {
		for range 3 {
			_, err := c.Run(t.Context(), 10)
			require.NoError(t, err, c.Name)
		}
		used, err := c.CPU()
		require.NoError(t, err)
		require.Positive(t, used)
	}
	require.NoError(t, gift.Close())
	require.NoError(t, g.Close())
	require.Zero(t, dev.Stats().Regions)
	_, err = g.Gift(0)
	require.ErrorIs(t, err, nfcomms.ErrInvalid)
	_, err = g.Echo().Run(t.Context(), 1)
	require.ErrorIs(t, err, nfcomms.ErrClosed)
}

// TestServeGiftsRefuses: the other host ends where there is no device.
func TestServeGiftsRefuses(t *testing.T) {
	code, _, errs := clitest.Run(t.Context(), giftCommand, "nowhere", "x")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, errs, "no scheme")
}
