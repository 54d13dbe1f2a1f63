package admin

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func init() {
	bridge.RegisterList("fake", func(context.Context) []bridge.Found {
		return []bridge.Found{{Address: "fake:", Driver: "fake", Info: &bridge.Info{Driver: "fake"}}, {Address: "fake:2", Driver: "fake", Err: nfcomms.ErrBusy}}
	})
}

func TestDevices(t *testing.T) {
	found, err := Devices(t.Context())
	require.NoError(t, err)
	require.True(t, slices.IsSortedFunc(found, func(a, b bridge.Found) int { return strings.Compare(a.Driver, b.Driver) }))
	at := make(map[string]bridge.Found)
	for _, f := range found {
		at[f.Address] = f
		dev, err := nfcomms.Open(t.Context(), f.Address)
		if err == nil {
			require.NoError(t, dev.Close())
		}
		if f.Driver != "fake" {
			assert.Equal(t, f.Err == nil, err == nil, "%s: %v, and when it is opened %v", f.Address, f.Err, err)
		}
	}
	require.Contains(t, at, "sim:")
	require.Equal(t, "fake", at["fake:"].Info.Driver)
	require.ErrorIs(t, at["fake:2"].Err, nfcomms.ErrBusy)
	require.True(t, slices.ContainsFunc(found, func(f bridge.Found) bool { return f.Driver == "dev" }), "or what is missing for one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found, err = Devices(ctx)
	require.Nil(t, found)
	require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
	require.ErrorContains(t, err, "list devices: withdrawn: context canceled")
}
