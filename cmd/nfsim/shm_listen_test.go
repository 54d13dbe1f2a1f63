//go:build cgo

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// TestSharedHosts has clients of a shared device connect to each other.
func TestSharedHosts(t *testing.T) {
	for _, shape := range []string{"", "islands=2&managers=4"} {
		t.Run(shape, func(t *testing.T) {
			bridgetest.RunHosts(t, func(t *testing.T) (listens, connects bridge.Device, _ bridge.ListenOptions) {
				address := shareDevice(t, shape)
				listens, err := bridge.Open(t.Context(), address, nil)
				require.NoError(t, err)
				connects, err = bridge.Open(t.Context(), address, nil)
				require.NoError(t, err)
				return spectest.Verified(t, listens), spectest.Verified(t, connects), bridge.ListenOptions{}
			})
		})
	}
}

// TestNodeHosts has hosts of the device of another node, which is another process, connect
// to each other: whose they are nobody knows there.
func TestNodeHosts(t *testing.T) {
	p := startNodes(t)
	bridgetest.RunHosts(t, func(t *testing.T) (listens, connects bridge.Device, _ bridge.ListenOptions) {
		return spectest.Verified(t, p.open(t)), spectest.Verified(t, p.open(t)), bridge.ListenOptions{Anyone: true}
	})
	t.Run("strangers", func(t *testing.T) {
		listens, connects := p.open(t), p.open(t)
		t.Cleanup(func() {
			require.NoError(t, connects.Close())
			require.NoError(t, listens.Close())
		})
		l, err := listens.(bridge.HostListener).Listen(t.Context(), bridge.ListenOptions{})
		require.NoError(t, err)
		_, err = connects.Subscribe(t.Context(), l.Target())
		require.ErrorIs(t, err, bridge.ErrNotSubscribed)
	})
}

// TestSharedGuests has processes of one client open the channels of the suite to another.
func TestSharedGuests(t *testing.T) {
	bridgetest.RunGuests(t, guests(t), func(t *testing.T, options string) (listens, runs bridge.Device, _ bridge.ListenOptions) {
		address := shareDevice(t, options)
		listens, err := bridge.Open(t.Context(), address, nil)
		require.NoError(t, err)
		runs, err = bridge.Open(t.Context(), address, nil)
		require.NoError(t, err)
		return spectest.Verified(t, listens), spectest.Verified(t, runs), bridge.ListenOptions{}
	})
}

// guests returns the image of programs that open channels to a host.
func guests(t *testing.T) []byte {
	image, err := program.Build(t.Context(), bridgetest.GuestSource(t, "../../firmware"), program.Options{})
	require.NoError(t, err)
	return image
}
