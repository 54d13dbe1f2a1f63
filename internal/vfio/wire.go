//go:build linux

package vfio

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"github.com/nfcomms/nfcomms/bridge"
)

// Commands of vfio-user, as QEMU's docs/interop/vfio-user.rst has them.
const (
	cmdVersion     = 1
	cmdMapDMA      = 2
	cmdUnmapDMA    = 3
	cmdDeviceInfo  = 4
	cmdRegionInfo  = 5
	cmdSetIRQs     = 8
	cmdRegionRead  = 9
	cmdRegionWrite = 10
	cmdReset       = 13
)

// Flags of a header, and of payloads.
const (
	flagReply   = 1 << 0
	flagNoReply = 1 << 4
	flagError   = 1 << 5
	typeMask    = 0xf

	mapReadWrite  = 3
	isPCI         = 1 << 1
	canReset      = 1 << 0
	regionMap     = 1 << 2
	triggerByFile = 0x24 // VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER
)

const (
	regionConfig = 7
	irqMSIX      = 2
	headerSize   = 16
	// mostAnswer bounds the payload of an answer; those to what is asked here are shorter.
	mostAnswer = 4096
)

// hello is what this client says of itself. An answer is not longer.
const hello = `{"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"pgsizes":4096,"max_dma_maps":65535}}`

// order is that of both ends.
var order = binary.LittleEndian

// header opens a message; status is the errno of an answer with flagError.
type header struct {
	id, command         uint16
	size, flags, status uint32
}

// message returns the bytes of one.
func message(id, command uint16, flags uint32, payload []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(payload))
	order.PutUint16(b, id)
	order.PutUint16(b[2:], command)
	order.PutUint32(b[4:], uint32(headerSize+len(payload)))
	order.PutUint32(b[8:], flags)
	return append(b, payload...)
}

func parseHeader(b []byte) (header, error) {
	h := header{order.Uint16(b), order.Uint16(b[2:]), order.Uint32(b[4:]), order.Uint32(b[8:]), order.Uint32(b[12:])}
	if h.size < headerSize || h.size > headerSize+mostAnswer {
		return h, fmt.Errorf("message of %d bytes: %w", h.size, syscall.EPROTO)
	}
	return h, nil
}

// words packs fields of 32 bits.
func words(fields ...uint32) []byte {
	b := make([]byte, 0, 4*len(fields))
	for _, f := range fields {
		b = order.AppendUint32(b, f)
	}
	return b
}

// access opens the payload of a read or a write of a region.
func access(region uint32, offset uint64, count int) []byte {
	return append(order.AppendUint64(nil, offset), words(region, uint32(count))...)
}

// short is the error of an answer that lacks bytes, or has too many.
func short(what string, payload []byte) error {
	return fmt.Errorf("%w: %s of %d bytes", bridge.ErrFault, what, len(payload))
}
