//go:build cgo

package main

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
)

// TestConformance runs every rule of the contract through the PCI device: BAR 2
// for the mailboxes, registers for doorbells and resets, an MSI-X vector, and
// DMA by bus address.
func TestConformance(t *testing.T) {
	bridgetest.Run(t, func(t *testing.T, query string) bridge.Device {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		var flags []string
		for name := range values {
			flags = append(flags, "--"+name, values.Get(name))
		}
		m := attach(t, flags...)
		require.NoError(t, m.enable())
		require.NoError(t, m.Restart(t.Context()))
		dev, err := mailbox.Open(context.Background(), m, bridge.Info{Address: "vfio-user:", Driver: "nfsim"}, nil)
		require.NoError(t, err)
		return spectest.Verified(t, dev)
	}, "stats/allocations") // device and client allocate here for each message of theirs
}
