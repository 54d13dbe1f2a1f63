//go:build cgo

package device_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/device"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// ownRings is a host whose rings are in memory of its own, beside a device's BAR.
type ownRings struct {
	*rig
	mem  []byte
	put  uint64 // slots in h2d of mailbox 0
	took uint64 // of its d2h
}

// there is the address of the host's memory on the bus.
const there = 0x100000

// newOwnRings boots a device that writes in the host's memory, and shakes hands.
func newOwnRings(t *testing.T, posted bool) *ownRings {
	r := newRig(t, func(o *device.Options) { o.Map = !posted })
	r.setReg(pci.RegShapeMailboxes, 1)
	r.setReg(pci.RegShapeSlots, 16)
	r.setReg(pci.RegShapeChannels, 64)
	fd, mem := memfd(t, 1<<16, true)
	require.NoError(t, r.MapDMA(there, 1<<16, 0, Readable|Writable, fd))
	r.boot()
	h := &ownRings{rig: r, mem: mem}
	hello := wire.Slot{Payload: [7]uint64(h.area(64+8, 7))}
	require.NotZero(t, hello.Hello().Capabilities&wire.CapHostRings)
	h.write(48, there)
	h.write(128+8, hello.Payload[:]...)
	h.write(128, uint64(wire.MakeHeader(wire.TypeHello, abi.PayloadSize, 1, 0, 0)))
	return h
}

// area reads words of BAR 2.
func (h *ownRings) area(at uint64, n int) []uint64 {
	h.t.Helper()
	b := make([]byte, 8*n)
	require.NoError(h.t, h.Read(pci.BarMailboxes, at, b))
	words := make([]uint64, n)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return words
}

// write writes words there, one by one.
func (h *ownRings) write(at uint64, words ...uint64) {
	h.t.Helper()
	for i, w := range words {
		require.NoError(h.t, h.PostWrite(pci.BarMailboxes, at+8*uint64(i), Words(w)))
	}
}

// own is a word of the host's memory, loaded in one piece.
func (h *ownRings) own(at uint64) uint64 {
	var b [8]byte
	require.Equal(h.t, abi.OK, h.dev.Bus().Read(b[:], there+at))
	return binary.LittleEndian.Uint64(b[:])
}

// setOwn stores one.
func (h *ownRings) setOwn(at, word uint64) {
	require.Equal(h.t, abi.OK, h.dev.Bus().Write(there+at, binary.LittleEndian.AppendUint64(nil, word)))
}

// publish puts a message on the control channel.
func (h *ownRings) publish(typ wire.Type, sequence uint16, payload [7]uint64) {
	h.t.Helper()
	at := h.area(24, 1)[0] + wire.MailboxSize + h.put%16*wire.SlotSize
	h.write(at+8, payload[:]...)
	h.write(at, uint64(wire.MakeHeader(typ, abi.PayloadSize, 1, sequence, 0).WithPhase((h.put/16+1)&1)))
	h.put++
}

// say publishes a message and rings if the island sleeps.
func (h *ownRings) say(typ wire.Type, sequence uint16, payload [7]uint64) {
	h.t.Helper()
	h.publish(typ, sequence, payload)
	if h.own(64) == 1 {
		h.setReg(pci.RegDoorbell, 1)
	}
}

// hear takes the next message.
func (h *ownRings) hear() (m wire.Slot) {
	h.t.Helper()
	at := wire.HostAreaSize + h.took%16*wire.SlotSize
	h.until("a message", func() bool { return wire.Header(h.own(at)).Phase() == (h.took/16+1)&1 })
	m.Header = h.own(at)
	for i := range m.Payload {
		m.Payload[i] = h.own(at + 8*uint64(i+1))
	}
	h.took++
	h.setOwn(64+16*64+64, h.took)
	return m
}

// TestRingsOfTheHost: a device writes messages, counters, island words and heartbeats in the host's
// memory, lap after lap, and nothing of them in the BAR.
func TestRingsOfTheHost(t *testing.T) {
	for _, posted := range []bool{false, true} {
		h := newOwnRings(t, posted)
		for id := range uint16(50) {
			var request, done wire.Slot
			*request.Control() = wire.Control{Op: wire.ControlMemory, Request: uint32(id) + 1, A: abi.EMEM}
			h.say(wire.TypeDirect, id+1, request.Payload)
			ack := h.hear()
			require.Equal(t, wire.TypeAck, wire.Header(ack.Header).Type())
			reply := h.hear()
			require.Equal(t, wire.TypeDirect, wire.Header(reply.Header).Type())
			require.Equal(t, request.Control().Request, reply.Control().Request)
			*done.Ack() = wire.Ack{Transaction: uint64(id) + 1, State: wire.StateConsumed, Direction: uint32(abi.D2H)}
			h.say(wire.TypeAck, id+1, done.Payload)
		}
		h.until("the counter", func() bool { return h.own(64+16*64) == h.put })
		h.until("a heartbeat", func() bool { return wire.Header(h.own(0)).Type() == wire.TypeHeartbeat })
		mailbox := h.area(24, 1)[0]
		require.Zero(t, h.area(mailbox, 1)[0], "h2d_head of the BAR")
		require.Zero(t, h.area(mailbox+wire.MailboxSize+16*wire.SlotSize, 1)[0], "d2h of the BAR")
		require.Zero(t, h.reg(pci.RegDMAFaults))
	}
}

// mute requires that nothing is written in the host's memory any more.
func (h *ownRings) mute(faults uint32) {
	h.t.Helper()
	clear(h.mem)
	h.publish(wire.TypeDirect, 1, [7]uint64{uint64(wire.ControlMemory) | 1<<32, uint64(abi.EMEM)})
	h.setReg(pci.RegDoorbell, 1)
	beat := h.dev.Bus().Stats().BytesWritten
	for range 5 { // intervals of the heartbeat, in which none arrives
		time.Sleep(10 * time.Millisecond)
	}
	require.Zero(h.t, bytes.Count(h.mem, []byte{0})-len(h.mem))
	require.Equal(h.t, beat, h.dev.Bus().Stats().BytesWritten)
	require.Equal(h.t, faults, h.reg(pci.RegDMAFaults))
}

// TestRingsOfTheHostAfterQuiesce: the fence stops messages and heartbeats as it stops DMA, so that the
// memory can be taken away.
func TestRingsOfTheHostAfterQuiesce(t *testing.T) {
	h := newOwnRings(t, false)
	h.until("a heartbeat", func() bool { return h.own(0) != 0 })
	h.control(pci.ControlQuiesce)
	require.NoError(t, h.UnmapDMA(there, 1<<16))
	h.mute(0)
}

// TestRingsOfTheHostOutOfReach: a device whose message did not get through writes nothing more.
func TestRingsOfTheHostOutOfReach(t *testing.T) {
	h := newOwnRings(t, false)
	h.until("a heartbeat", func() bool { return h.own(0) != 0 })
	require.NoError(t, h.UnmapDMA(there, 1<<16))
	h.until("a fault", func() bool { return h.reg(pci.RegDMAFaults) != 0 })
	fd, _ := memfd(t, 1<<16, true)
	require.NoError(t, h.MapDMA(there, 1<<16, 0, Readable|Writable, fd))
	h.mute(1)
}
