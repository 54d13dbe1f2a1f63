package bridge

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFabricAddresses: a scheme is a medium, and none is TLS.
func TestFabricAddresses(t *testing.T) {
	for address, want := range map[string]struct {
		medium FabricMedium
		host   string
	}{
		"a:1":              {MediumTLS, "a:1"},
		"tcp://10.0.0.1:7": {MediumTLS, "10.0.0.1:7"},
		"udp://[::1]:7000": {MediumUDP, "[::1]:7000"},
		":7000":            {MediumTLS, ":7000"},
	} {
		medium, host, err := ParseFabricAddress(address)
		require.NoError(t, err, address)
		require.Equal(t, want.medium, medium, address)
		require.Equal(t, want.host, host, address)
	}
	for _, bad := range []string{"", "a", "a:", "udp://", "udp://a", "quic://a:1", "://a:1", "udp:a:1", "tcp://udp://a:1", "UDP://a:1"} {
		_, _, err := ParseFabricAddress(bad)
		require.ErrorIs(t, err, ErrInvalid, bad)
	}
	require.Equal(t, "udp", MediumUDP.String())
	require.Empty(t, FabricMedium(200).String())
}
