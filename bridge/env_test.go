package bridge_test

import (
	"context"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// opened are the addresses of gifts.
var opened []string

func init() { // once, however often tests run
	bridge.Register("gift", func(_ context.Context, a bridge.Address, _ *bridge.Options) (bridge.Device, error) {
		opened = append(opened, a.String())
		return nil, nil
	})
}

// TestGiven: "env:" is the first device of the environment, "env:NAME" the one of that name; a
// process that was given none, another or a wrong one learns which.
func TestGiven(t *testing.T) {
	opened = nil
	open := func(address string) error {
		_, err := bridge.Open(t.Context(), address, nil)
		return err
	}
	err := open("env:")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "no variable NFCOMMS_DEVICE_…: this process was given no device")
	require.ErrorIs(t, bridge.CheckAddress("env:"), fs.ErrNotExist)

	t.Setenv("NFCOMMS_DEVICE_NIC_1_X", "gift:/b?user=7")
	t.Setenv("NFCOMMS_DEVICE_NIC0", "gift:/a")
	t.Setenv("NFCOMMS_DEVICE_OFF", "")
	for _, address := range []string{"env:", "env:nic0", "env:nic-1.x"} {
		require.NoError(t, open(address))
		require.NoError(t, bridge.CheckAddress(address))
	}
	require.Equal(t, []string{"gift:/a", "gift:/a", "gift:/b?user=7"}, opened)
	found, err := bridge.Devices(t.Context())
	require.NoError(t, err)
	require.Equal(t, []bridge.Found{{Address: "gift:/a", Driver: "gift"}, {Address: "gift:/b?user=7", Driver: "gift"}}, found[len(found)-2:])

	require.ErrorContains(t, open("env:nic2"), "no variable NFCOMMS_DEVICE_NIC2, only NFCOMMS_DEVICE_NIC0, NFCOMMS_DEVICE_NIC_1_X")
	require.ErrorIs(t, open("env:?user=7"), bridge.ErrOption)
	for _, wrong := range []string{"env:", "nothing"} {
		t.Setenv("NFCOMMS_DEVICE_NIC0", wrong)
		err := open("env:")
		require.ErrorIs(t, err, bridge.ErrScheme)
		require.ErrorContains(t, err, "variable NFCOMMS_DEVICE_NIC0: ")
	}
	require.ErrorIs(t, bridge.CheckAddress("env:"), bridge.ErrScheme)
}
