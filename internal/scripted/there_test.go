package scripted

import (
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// farHost is a host with rings in memory of its own, which begins at a bus address.
type farHost struct {
	mem   []byte
	rings int
}

const farAddress = 1 << 32

func (h *farHost) Ring(int)                                { h.rings++ }
func (h *farHost) Move([]byte, uint64, abi.Direction) bool { return false }

func (h *farHost) Post(address uint64, p []byte) bool {
	at := address - farAddress
	if at > uint64(len(h.mem)) || uint64(len(p)) > uint64(len(h.mem))-at {
		return false
	}
	copy(h.mem[at:], p)
	return true
}

func (h *farHost) Peek(p []byte, address uint64) bool {
	at := address - farAddress
	if at > uint64(len(h.mem)) || uint64(len(p)) > uint64(len(h.mem))-at {
		return false
	}
	copy(p, h.mem[at:])
	return true
}

func (h *farHost) word(at uint64) uint64 { return binary.LittleEndian.Uint64(h.mem[at:]) }

// far is a device whose host has answered, and stands still.
func far(t *testing.T, memory int) (*Device, *farHost) {
	t.Helper()
	h := &farHost{mem: make([]byte, memory)}
	sh := Shape{Mailboxes: 1, Slots: 16, Channels: 64, HostRings: 1}.withDefaults()
	s, status := NewOn(make([]byte, sh.areaSize()), h, sh, Hooks{}, 1)
	require.Equal(t, abi.OK, status)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	synctest.Wait()
	p := s.area.page()
	require.NotZero(t, p.DeviceHello.Hello().Capabilities&wire.CapHostRings)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.False(t, s.area.own.settled(p), "before the host has answered")
	p.HostArea = farAddress
	p.HostHello.Hello().Capabilities = wire.CapHostRings
	p.HostHello.Header = uint64(wire.MakeHeader(wire.TypeHello, abi.PayloadSize, 1, 0, 0))
	require.True(t, s.area.own.settled(p))
	return s, h
}

// TestThere: with its capability, messages, counters, island words and heartbeats are written in the
// host's memory, and park words and counters of the host are looked at there.
func TestThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := far(t, 1<<16)
		m := wire.Slot{Header: s.header(wire.TypeDirect, 8, 1, 20), Payload: [7]uint64{42}}
		ring := s.shape.thereRing(0)
		s.Inject(m)
		require.Equal(t, m.Header|1<<7, h.word(ring))
		require.Equal(t, uint64(42), h.word(ring+8))
		require.Zero(t, h.rings, "nobody sleeps")
		binary.LittleEndian.PutUint32(h.mem[s.shape.therePark(20):], 1)
		for range 17 {
			s.Inject(m)
		}
		require.Equal(t, 15+2, h.rings, "15 messages, and two for want of room")
		binary.LittleEndian.PutUint64(h.mem[thereMailbox+thereD2HHead:], 16)
		s.Inject(m)
		require.Equal(t, m.Header, h.word(ring), "the next lap")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, wire.TypeHeartbeat, wire.Header(h.word(thereBeat)).Type())
		require.Equal(t, uint64(1), h.word(thereIsland), "it sleeps")
		slot := &s.area.mailboxes[0].h2d[0]
		slot.Header = s.header(wire.TypeFin, 0, 1, 20) | 1<<7
		s.Ring(0)
		synctest.Wait()
		require.Equal(t, uint64(1), h.word(thereMailbox), "how far it consumed")
		require.NotEmpty(t, s.Polled())
	})
}

// TestThereEnds: behind a fence, and when something did not get through, nothing is written.
func TestThereEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := far(t, 1<<16)
		s.Fence()
		clear(h.mem)
		s.Inject(wire.Slot{Header: s.header(wire.TypeDirect, 0, 1, 20)})
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, make([]byte, len(h.mem)), h.mem)
		require.Empty(t, s.Polled())
	})
	synctest.Test(t, func(t *testing.T) {
		s, h := far(t, wire.HostAreaSize)
		s.Inject(wire.Slot{Header: s.header(wire.TypeDirect, 0, 1, 20)})
		clear(h.mem)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, make([]byte, len(h.mem)), h.mem, "no heartbeat either")
	})
}
