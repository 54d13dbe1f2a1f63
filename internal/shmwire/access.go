package shmwire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// AccessKind is what a message of the socket for puts and gets is for.
type AccessKind uint16

// Kinds of them. A put or a get is answered by one message of its kind and number, when it has
// ended; others may end before.
const (
	Put      AccessKind = iota + 1 // with the bytes
	Get                            // answered with the bytes
	Withdraw                       // end the request of that number, whose answer says how it ended
)

const (
	// AccessSize is that of a message without the bytes that are put or got.
	AccessSize = 32
	// AccessData is how many bytes a request puts or gets at most.
	AccessData = 32 << 10
	// AccessMost is how many requests of a client are under way at most; the next one waits. All
	// of them together fit into the socket, so that nobody waits for the other side to read.
	AccessMost = 8
	// AccessBuffer is what the socket has room for, in each direction.
	AccessBuffer = 2 * AccessMost * (AccessSize + AccessData)
)

// Access is a message of the socket for puts and gets, in either direction.
type Access struct {
	Kind   AccessKind
	Status abi.Status // of an answer
	Number uint32     // the client's name for the request
	Size   uint32     // bytes to put or get
	Window bridge.FabricWindow
	Offset uint64
}

// Encode writes a message but for the bytes that follow it.
func (a *Access) Encode() []byte {
	b := make([]byte, 0, AccessSize)
	b = binary.LittleEndian.AppendUint16(b, uint16(a.Kind))
	b = binary.LittleEndian.AppendUint16(b, uint16(a.Status))
	b = binary.LittleEndian.AppendUint32(b, a.Number)
	b = binary.LittleEndian.AppendUint32(b, uint32(a.Window.Node))
	b = binary.LittleEndian.AppendUint32(b, a.Size)
	b = binary.LittleEndian.AppendUint64(b, a.Window.Key)
	return binary.LittleEndian.AppendUint64(b, a.Offset)
}

// ParseRequest reads what a client sent, and the bytes to put.
func ParseRequest(b []byte) (Access, []byte, error) {
	a, data, err := parseAccess(b)
	if err == nil && (a.Status != 0 || len(data) != a.carries(Put)) {
		err = fmt.Errorf("%w: a request of %d bytes", ErrForeign, len(b))
	}
	return a, data, err
}

// ParseAnswer reads what a device process sent, and the bytes that it got.
func ParseAnswer(b []byte) (Access, []byte, error) {
	a, data, err := parseAccess(b)
	if err == nil && (a.Kind == Withdraw || len(data) != a.carries(Get)) {
		err = fmt.Errorf("%w: an answer of %d bytes", ErrForeign, len(b))
	}
	return a, data, err
}

// carries is how many bytes follow a message, where those of a kind have some.
func (a *Access) carries(k AccessKind) int {
	if a.Kind != k || a.Status != 0 {
		return 0
	}
	return int(a.Size)
}

func parseAccess(b []byte) (a Access, data []byte, err error) {
	if len(b) < AccessSize {
		return a, nil, fmt.Errorf("%w: %d bytes about a window", ErrForeign, len(b))
	}
	a = Access{
		Kind:   AccessKind(binary.LittleEndian.Uint16(b)),
		Status: abi.Status(binary.LittleEndian.Uint16(b[2:])),
		Number: binary.LittleEndian.Uint32(b[4:]),
		Window: bridge.FabricWindow{Node: abi.Node(binary.LittleEndian.Uint32(b[8:])), Key: binary.LittleEndian.Uint64(b[16:])},
		Size:   binary.LittleEndian.Uint32(b[12:]),
		Offset: binary.LittleEndian.Uint64(b[24:]),
	}
	if a.Kind < Put || a.Kind > Withdraw || a.Size > AccessData {
		return a, nil, fmt.Errorf("%w: kind %d about %d bytes of a window", ErrForeign, a.Kind, a.Size)
	}
	return a, b[AccessSize:], nil
}

// Err returns how a put or a get ended.
func (a *Access) Err() error {
	err := bridge.Error(a.Status)
	switch {
	case errors.Is(err, bridge.ErrNotSubscribed):
		return fmt.Errorf("no such window: %w", err)
	case errors.Is(err, bridge.ErrNotSupported):
		return fmt.Errorf("window does not allow it: %w", err)
	case errors.Is(err, bridge.ErrDeviceLost):
		return fmt.Errorf("no way leads to the node: %w", err)
	}
	return err
}
