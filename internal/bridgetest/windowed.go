package bridgetest

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// The operations of the program in pkg/nfcomms/fabric/testdata/window.
const (
	WindowMake = iota
	WindowRevoke
	WindowSum
	WindowClear
	WindowFree
	WindowCrash
)

// Windowed is a process of that program, as a WindowOwner.
type Windowed struct {
	T     *testing.T
	Place abi.Node // of its device
	Ch    interface {
		Send(ctx context.Context, msg []byte) error
		Receive(ctx context.Context, buf []byte) (int, error)
	}
}

// Ask has the process do something.
func (w *Windowed) Ask(request ...uint64) (abi.Status, uint64) {
	w.T.Helper()
	var message [32]byte
	for i, word := range request {
		binary.LittleEndian.PutUint64(message[8*i:], word)
	}
	require.NoError(w.T, w.Ch.Send(w.T.Context(), message[:]))
	n, err := w.Ch.Receive(w.T.Context(), message[:])
	require.NoError(w.T, err)
	require.Equal(w.T, 16, n)
	return abi.Status(-int64(binary.LittleEndian.Uint64(message[:]))), binary.LittleEndian.Uint64(message[8:])
}

// get has it do what succeeds.
func (w *Windowed) get(request ...uint64) uint64 {
	w.T.Helper()
	status, value := w.Ask(request...)
	require.Equal(w.T, abi.OK, status)
	return value
}

// Window has it make one.
func (w *Windowed) Window(offset, size, access uint64) bridge.FabricWindow {
	w.T.Helper()
	return bridge.FabricWindow{Node: w.Place, Key: w.get(WindowMake, offset, size, access)}
}

// Revoke has it end one.
func (w *Windowed) Revoke(window bridge.FabricWindow) {
	w.T.Helper()
	w.get(WindowRevoke, window.Key)
}

// Sum has it add up its memory.
func (w *Windowed) Sum() uint64 {
	w.T.Helper()
	return w.get(WindowSum)
}

// Clear has it zero its memory.
func (w *Windowed) Clear() {
	w.T.Helper()
	w.get(WindowClear)
}
