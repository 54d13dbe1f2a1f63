//go:build cgo

package firmware_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// worst waits until the worst level that the heartbeat carries is the one wanted.
func worst(t *testing.T, i *firmware.Instance, want abi.Level) {
	t.Helper()
	base, _ := i.Area()
	word := &(*wire.Area)(base).Heartbeat.Payload[2]
	require.Eventually(t, func() bool {
		return abi.Diagnostic(atomic.LoadUint64(word)).Worst() == want
	}, time.Minute, time.Millisecond)
}

// TestSense: what sensors read shows in the heartbeat, also after a restart, until
// they read that all is well.
func TestSense(t *testing.T) {
	i, status := firmware.Start(firmware.Config{Beat: time.Millisecond, LogFD: -1})
	require.Equal(t, abi.OK, status)
	defer i.Close()
	i.Sense(abi.Diagnostic(abi.Sick) << abi.DiagTemperature)
	worst(t, i, abi.Sick)
	i.Sense(abi.Diagnostic(abi.Broken) << abi.DiagVoltage)
	worst(t, i, abi.Broken)
	_, status = i.Restart()
	require.Equal(t, abi.OK, status)
	worst(t, i, abi.Broken)
	i.Sense(0)
	worst(t, i, abi.Normal)
}
