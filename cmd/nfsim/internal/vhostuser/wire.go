package vhostuser

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed is the end of a connection whose client sent nonsense.
var ErrMalformed = errors.New("vhost-user: malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrMalformed, fmt.Errorf(format, args...))
}

// Request says what a message asks for.
type Request uint32

// Requests of the client that are served.
const (
	GetFeatures         Request = 1
	SetFeatures         Request = 2
	SetOwner            Request = 3
	SetMemTable         Request = 5
	SetVringNum         Request = 8
	SetVringAddr        Request = 9
	SetVringBase        Request = 10
	GetProtocolFeatures Request = 15
	SetProtocolFeatures Request = 16
	SetVringEnable      Request = 18
	SetBackendChannel   Request = 21
	VringKick           Request = 35
)

// CallVring is the server's request on the channel of its own: look at a queue.
const CallVring Request = 4

// Flags of a header, besides the version.
const (
	FlagReply     = 1 << 2
	FlagNeedReply = 1 << 3

	version     = 1
	versionMask = 3
)

// Features of the device, and of the protocol. The latter are all needed: a kick
// is a message whose reply says that the queue was served, so that a guest that
// waits for an answer never waits by the clock.
const (
	FeatureProtocol = 1 << 30
	FeatureVersion1 = 1 << 32
	features        = FeatureProtocol | FeatureVersion1

	ProtocolReplyAck  = 1 << 3
	ProtocolBackend   = 1 << 5
	ProtocolInBand    = 1 << 14
	protocolFeatures  = ProtocolReplyAck | ProtocolBackend | ProtocolInBand
	maxRegions        = 8
	maxQueueSize      = 1024
	maxPayload        = 8 + 32*maxRegions
	vringAddrSize     = 40
	vringStateSize    = 8
	memoryRegionSize  = 32
	memoryTableHeader = 8
)

// HeaderSize is that of a header, in bytes.
const HeaderSize = 12

// Header opens every message.
type Header struct {
	Request Request
	Flags   uint32
	Size    uint32 // of what follows
}

// order is the byte order of the protocol, and of a virtio device of version 1.
var order = binary.LittleEndian

// Append appends the header to b.
func (h Header) Append(b []byte) []byte {
	b = order.AppendUint32(b, uint32(h.Request))
	b = order.AppendUint32(b, h.Flags)
	return order.AppendUint32(b, h.Size)
}

// parseHeader reads the header of a client's message.
func parseHeader(b []byte) (Header, error) {
	h := Header{Request: Request(order.Uint32(b)), Flags: order.Uint32(b[4:]), Size: order.Uint32(b[8:])}
	if h.Flags&versionMask != version || h.Flags&^(versionMask|FlagNeedReply) != 0 {
		return h, malformed("request %d with flags %#x", h.Request, h.Flags)
	}
	if h.Size > maxPayload {
		return h, malformed("request %d of %d bytes", h.Request, h.Size)
	}
	return h, nil
}
