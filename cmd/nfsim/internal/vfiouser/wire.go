package vfiouser

import (
	"encoding/binary"
	"fmt"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// Command is what a message asks for.
type Command uint16

// Commands of the protocol. The server sends DMARead and DMAWrite to the
// client. The client sends all others to the server.
const (
	Version         Command = 1
	DMAMap          Command = 2
	DMAUnmap        Command = 3
	DeviceInfo      Command = 4
	RegionInfo      Command = 5
	RegionIOFDs     Command = 6
	IRQInfo         Command = 7
	SetIRQs         Command = 8
	RegionRead      Command = 9
	RegionWrite     Command = 10
	DMARead         Command = 11
	DMAWrite        Command = 12
	DeviceReset     Command = 13
	DirtyPages      Command = 14
	RegionWriteMult Command = 15
	DeviceFeature   Command = 16
	MigDataRead     Command = 17
	MigDataWrite    Command = 18
)

// Flags of a header.
const (
	FlagReply   = 1 << 0 // else a command
	FlagNoReply = 1 << 4
	FlagError   = 1 << 5

	typeMask   = 0xf
	knownFlags = typeMask | FlagNoReply | FlagError
)

// Sizes in bytes.
const (
	HeaderSize = 16
	accessSize = 16 // before the data of a region or DMA access
	// MaxTransfer is the most data one message carries.
	MaxTransfer = 1 << 20
	// MaxMessage is the longest message.
	MaxMessage = HeaderSize + accessSize + MaxTransfer
	// MaxFiles is the most descriptors one message carries.
	MaxFiles = fdpass.Max
	// MaxMaps is the most DMA ranges a client may map.
	MaxMaps = 65535
)

// Header opens every message.
type Header struct {
	ID      uint16
	Command Command
	Size    uint32 // of the message, this header included
	Flags   uint32
	Errno   uint32 // of a reply with FlagError
}

// order is the byte order of the protocol: that of both ends.
var order = binary.LittleEndian

// Put writes the header to the start of b.
func (h Header) Put(b []byte) {
	order.PutUint16(b, h.ID)
	order.PutUint16(b[2:], uint16(h.Command))
	order.PutUint32(b[4:], h.Size)
	order.PutUint32(b[8:], h.Flags)
	order.PutUint32(b[12:], h.Errno)
}

// ParseHeader reads a header. The error says that no message can follow: its
// size makes no sense.
func ParseHeader(b []byte) (Header, error) {
	h := Header{
		ID: order.Uint16(b), Command: Command(order.Uint16(b[2:])), Size: order.Uint32(b[4:]),
		Flags: order.Uint32(b[8:]), Errno: order.Uint32(b[12:]),
	}
	if h.Size < HeaderSize || h.Size > MaxMessage {
		return h, fmt.Errorf("message of %d bytes, not %d..%d", h.Size, HeaderSize, MaxMessage)
	}
	return h, nil
}

// message is one message as it arrived.
type message struct {
	Header
	fdpass.Set
	payload []byte
}

// reader takes little-endian fields from a payload; it is empty-safe: fields
// past the end are zero and short says so.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.short, r.b = true, nil
		return make([]byte, n)
	}
	f := r.b[:n]
	r.b = r.b[n:]
	return f
}

func (r *reader) u16() uint16 { return order.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return order.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return order.Uint64(r.take(8)) }
