package vhostuser_test

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostuser"
)

var ones = []byte{0xff, 0xff, 0xff, 0xff}

func TestAccess(t *testing.T) {
	r := ready(t)
	b, err := r.Read(ConfigRead, 0, 0, 4)
	require.NoError(t, err)
	require.Equal(t, "\x34\x12\x46\x4e", string(b))
	require.NoError(t, r.Write(Store, 2, 10, []byte("mailbox")))
	b, err = r.Read(Load, 2, 8, 11)
	require.NoError(t, err)
	require.Equal(t, "\x00\x00mailbox\x00\x00", string(b))
	_, err = r.Do(Operation(Set, 2, 4, 11, []byte{'x'}), 0)
	require.NoError(t, err)
	b, err = r.Read(Load, 2, 10, 7)
	require.NoError(t, err)
	require.Equal(t, "mxxxxox", string(b))
	require.Equal(t, vfiouser.Stats{Messages: 27, Posted: 3}, r.conn.Stats())
}

// TestNobodyAnswers reads what the device refuses, and BARs that are off.
func TestNobodyAnswers(t *testing.T) {
	r := ready(t)
	r.dev.poke(0, 0, nil, errWidth)
	b, err := r.Read(Load, 0, 0, 4)
	require.NoError(t, err)
	require.Equal(t, ones, b)
	require.NoError(t, r.Write(Store, 0, 0, []byte{1}))
	require.Equal(t, uint64(2), r.conn.Stats().Refused)
	r.dev.poke(0, 0, []byte{7}, nil)
	require.NoError(t, r.Write(ConfigWrite, 0, 4, []byte{0, 0}))
	require.NoError(t, r.Write(Store, 0, 0, []byte{1}))
	b, err = r.Read(Load, 0, 0, 4)
	require.NoError(t, err)
	require.Equal(t, ones, b)
	require.NoError(t, r.Write(ConfigWrite, 0, 4, []byte{2, 0}))
	b, err = r.Read(Load, 0, 0, 1)
	require.NoError(t, err)
	require.Equal(t, []byte{7}, b)
}

func TestMemoryIsTheBus(t *testing.T) {
	r := ready(t)
	require.Equal(t, []vfiouser.Mapping{{Address: Guest, Size: MemorySize, Offset: 4096, Read: true, Write: true}}, r.dev.ranges())
	require.NoError(t, r.Share())
	require.Len(t, r.dev.ranges(), 1, "the table is new, not more")
	require.NoError(t, r.Kick(Commands), "queues went with the old table")
}

// entry is an MSI-X table entry that sends value to an address.
func entry(value, control uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, 0xa0000)
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, value), control)
}

// enable sets MSI-X up with one vector to value.
func (r *rig) enable(t *testing.T, vector int, value uint32) {
	require.NoError(t, r.Write(Store, 1, uint64(16*vector), entry(value, 0)))
	require.NoError(t, r.Write(ConfigWrite, 0, capability+2, []byte{2, 0x80}))
}

// expect waits for an interrupt.
func (r *rig) expect(t *testing.T, value uint32) {
	t.Helper()
	require.NoError(t, r.Await(Interrupts))
	address, got, err := r.Interrupt()
	require.NoError(t, err)
	require.Equal(t, uint64(0xa0000), address)
	require.Equal(t, value, got)
}

func TestInterrupts(t *testing.T) {
	r := ready(t)
	r.enable(t, 1, 77)
	r.Room()
	r.Room()
	r.dev.fire(1)
	r.expect(t, 77)
	r.enable(t, 2, 78)
	r.dev.fire(2)
	r.expect(t, 78)
	b, err := r.Read(Load, 1, 16, 16)
	require.NoError(t, err)
	require.Equal(t, entry(77, 0), b)
}

// TestInterruptsWait fires vectors that may not go yet.
func TestInterruptsWait(t *testing.T) {
	for name, hold := range map[string]struct {
		on, off func(r *rig) error
	}{
		"masked": {
			func(r *rig) error { return r.Write(Store, 1, 12, []byte{1, 0, 0, 0}) },
			func(r *rig) error { return r.Write(Store, 1, 12, []byte{0, 0, 0, 0}) },
		},
		"all masked": {
			func(r *rig) error { return r.Write(ConfigWrite, 0, capability+2, []byte{2, 0xc0}) },
			func(r *rig) error { return r.Write(ConfigWrite, 0, capability+2, []byte{2, 0x80}) },
		},
		"disabled": {
			func(r *rig) error { return r.Write(ConfigWrite, 0, capability+2, []byte{2, 0}) },
			func(r *rig) error { return r.Write(ConfigWrite, 0, capability+2, []byte{2, 0x80}) },
		},
		"no room": {
			func(*rig) error { return nil },
			func(r *rig) error { r.Room(); return r.Kick(Interrupts) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t)
			if name != "no room" {
				r.Room()
			}
			r.enable(t, 0, 5)
			require.NoError(t, hold.on(r))
			r.dev.fire(0)
			require.Eventually(t, func() bool {
				b, err := r.Read(Load, 1, pendingAt, 8)
				return err == nil && bytes.Equal(b, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			}, patience, tick)
			require.NoError(t, hold.off(r))
			r.expect(t, 5)
			b, err := r.Read(Load, 1, pendingAt, 8)
			require.NoError(t, err)
			require.Equal(t, make([]byte, 8), b)
		})
	}
}

// TestCalls hears of stores without an answer between them, before they fill the
// queue.
func TestCalls(t *testing.T) {
	r := ready(t)
	for range QueueSize / 4 {
		require.NoError(t, r.Write(Store, 2, 0, []byte{1}))
	}
	require.NoError(t, r.Await(Commands))
	r.Quiet(Commands)
	for range QueueSize {
		require.NoError(t, r.Write(Store, 2, 0, []byte{1}))
	}
	r.enable(t, 0, 5)
	r.Room()
	r.dev.fire(0)
	r.expect(t, 5)
}

func TestClose(t *testing.T) {
	r := newRig(t)
	require.NoError(t, r.Setup())
	require.NoError(t, r.conn.Close())
	require.ErrorIs(t, <-r.ends, net.ErrClosed)
	require.NoError(t, r.Client.Close())
	r.dev.close()
}

// TestDeviceWithoutMSIX is no device for this.
func TestDeviceWithoutMSIX(t *testing.T) {
	dev := newMemory(t)
	dev.poke(vfiouser.RegionConfig, capability, []byte{5}, nil)
	c := serverOf(t, dev)
	require.ErrorContains(t, c.Serve(), "no MSI-X table")
}

// message is what a client sends, with descriptors.
type message struct {
	bytes []byte
	files int
}

func says(m []byte) message { return message{bytes: m} }

// TestMalformedMessages ends connections that follow the handshake.
func TestMalformedMessages(t *testing.T) {
	header := func(request, flags, size uint32) message {
		return says(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(
			binary.LittleEndian.AppendUint32(nil, request), flags), size))
	}
	table := func(payload ...any) message { return message{Message(SetMemTable, 1, payload...), 1} }
	state := func(r Request, queue, v uint32) message { return says(Message(r, 1, queue, v)) }
	place := Place(0)
	place[2] = uint64(User + MemorySize - 64)
	for name, m := range map[string]message{
		"version":         header(1, 2, 0),
		"reply":           header(1, 5, 0),
		"too long":        header(1, 1, 1<<20),
		"unknown":         header(77, 1, 0),
		"payload":         says(Message(GetFeatures, 1, uint32(1))),
		"protocol size":   says(Message(GetProtocolFeatures, 1, uint32(1))),
		"owner size":      says(Message(SetOwner, 1, uint32(1))),
		"features size":   says(Message(SetFeatures, 1, uint32(1))),
		"features":        says(Message(SetFeatures, 1, ^uint64(0))),
		"no version 1":    says(Message(SetFeatures, 1, uint64(0))),
		"no protocol":     says(Message(SetProtocolFeatures, 1, uint64(0))),
		"descriptor":      {Message(GetFeatures, 1), 1},
		"descriptors":     {Message(GetFeatures, 1), 20},
		"no memory":       says(Message(SetMemTable, 1)),
		"no regions":      table(uint32(0), uint32(0)),
		"many regions":    table(uint32(9), uint32(0)),
		"short table":     table(uint32(1), uint32(0), uint64(0)),
		"no file":         says(Message(SetMemTable, 1, Table()...)),
		"outside of file": table(uint32(1), uint32(0), uint64(0), uint64(1<<40), uint64(0), uint64(0)),
		"second channel":  {Message(SetBackendChannel, 1), 1},
		"no channel":      says(Message(SetBackendChannel, 1)),
		"state size":      says(Message(SetVringNum, 1, uint32(0))),
		"third queue":     state(SetVringNum, 2, 8),
		"at work":         state(SetVringNum, 0, 8),
		"address size":    says(Message(SetVringAddr, 1, uint32(0))),
		"address at work": says(Message(SetVringAddr, 1, Place(0)...)),
		"kick third":      state(VringKick, 2, 0),
	} {
		t.Run(name, func(t *testing.T) {
			before := descriptors(t)
			r := newRig(t)
			require.NoError(t, r.Setup())
			var files []int
			for range m.files {
				files = append(files, r.Channel())
			}
			require.NoError(t, r.Send(m.bytes, files...))
			r.refused(t)
			require.Equal(t, before, descriptors(t), "descriptors")
		})
	}
}

// TestMalformedSetup ends connections that set queues up in a wrong way.
func TestMalformedSetup(t *testing.T) {
	outside := Place(0)
	outside[2] = uint64(User + MemorySize - 64)
	flags := Place(0)
	flags[1] = uint32(1)
	for name, m := range map[string][]byte{
		"no descriptors":    Message(SetVringNum, 1, uint32(0), uint32(0)),
		"odd size":          Message(SetVringNum, 1, uint32(0), uint32(7)),
		"too many":          Message(SetVringNum, 1, uint32(0), uint32(2048)),
		"outside of memory": Message(SetVringAddr, 1, outside...),
		"flags":             Message(SetVringAddr, 1, flags...),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			require.NoError(t, r.Setup())
			_, err := r.Ask(SetVringEnable, nil, uint32(0), uint32(0))
			require.NoError(t, err)
			require.NoError(t, r.Send(m))
			r.refused(t)
		})
	}
	t.Run("enabled too early", func(t *testing.T) {
		r := newRig(t)
		require.NoError(t, r.Send(Message(SetVringEnable, 1, uint32(0), uint32(1))))
		r.refused(t)
	})
	t.Run("addresses without a size", func(t *testing.T) {
		r := newRig(t)
		require.NoError(t, r.Share())
		require.NoError(t, r.Send(Message(SetVringAddr, 1, Place(0)...)))
		r.refused(t)
	})
	t.Run("channel that is none", func(t *testing.T) {
		r := newRig(t)
		require.NoError(t, r.Send(Message(SetBackendChannel, 1), r.File()))
		r.refused(t)
	})
}
