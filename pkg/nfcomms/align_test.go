//go:build cgo

package nfcomms

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// TestTraceLeavesTheTimeService: who opens its channel while a tracer asks it for the time waits for
// that, and does not get ErrBusy.
func TestTraceLeavesTheTimeService(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	tr, err := dev.trace(ctx, 0, 0, nil)
	require.NoError(t, err)
	defer tr.Close()
	stop, asked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(asked)
		for {
			select {
			case <-stop:
				return
			default:
			}
			dev.clock.mu.Lock()
			dev.clock.at = time.Time{}
			dev.clock.mu.Unlock()
			tr.Take(ctx)
		}
	}()
	for range 200 {
		ch, err := dev.Subscribe(ctx, abi.TargetTime)
		require.NoError(t, err)
		require.NoError(t, ch.Close())
	}
	close(stop)
	<-asked
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = dev.Subscribe(ended, abi.TargetTime)
	require.ErrorIs(t, err, ErrWithdrawn)
}
