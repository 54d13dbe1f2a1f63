package card

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/bridgetest"
)

func TestConformance(t *testing.T) {
	bridgetest.Run(t, func(t *testing.T, options string) bridge.Device {
		dev, err := bridge.Open(context.Background(), "card:?"+options, nil)
		require.NoError(t, err)
		return dev
	})
}
