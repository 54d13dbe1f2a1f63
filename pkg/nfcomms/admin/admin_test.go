//go:build cgo

package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestDeviceWithoutRegisters: a device that is no card refuses, with the operation and the address.
func TestDeviceWithoutRegisters(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	_, peek := Peek(dev, 0, 0, 4)
	_, interrupts := Interrupts(dev, 0)
	_, wait := WaitInterrupt(t.Context(), dev, 0, 0)
	for err, op := range map[error]string{
		peek: "peek", Poke(dev, 0, 0, 4, 0): "poke", interrupts: "wait for interrupt", wait: "wait for interrupt",
		SwitchInterrupt(dev, 0, false): "switch interrupt",
	} {
		require.EqualError(t, err, op+" sim: not supported: the device has no registers")
		require.IsType(t, &nfcomms.OpError{}, err)
	}
}
