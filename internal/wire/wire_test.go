package wire

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := Type(rapid.IntRange(0, 0x7f).Draw(t, "type"))
		length := rapid.IntRange(0, 0xff).Draw(t, "length")
		epoch := rapid.Uint8().Draw(t, "epoch")
		sequence := rapid.Uint16().Draw(t, "sequence")
		channel := rapid.Uint32Range(0, abi.ChannelsMax-1).Draw(t, "channel")
		phase := rapid.Uint64Range(0, 1).Draw(t, "phase")

		h := MakeHeader(typ, length, epoch, sequence, channel)
		assert.Zero(t, h.Phase(), "a new header has phase 0")
		h = h.WithPhase(phase)
		assert.Equal(t, typ, h.Type())
		assert.Equal(t, length, h.Length())
		assert.Equal(t, epoch, h.Epoch())
		assert.Equal(t, sequence, h.Sequence())
		assert.Equal(t, channel, h.Channel())
		assert.Equal(t, phase, h.Phase())
	})
}

// A field that is set does not change the others.
func TestHeaderFieldsDoNotLeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := MakeHeader(Type(rapid.Uint8().Draw(t, "type")), rapid.IntRange(0, 1<<20).Draw(t, "length"), 0, 0, 0)
		assert.Zero(t, h.Phase())
		assert.Zero(t, h.Epoch())
		assert.Zero(t, h.Sequence())
		assert.Zero(t, h.Channel())
		h = MakeHeader(0, 0, 0, 0, rapid.Uint32().Draw(t, "channel"))
		assert.Less(t, h.Channel(), uint32(abi.ChannelsMax))
		assert.Zero(t, h.Sequence())
	})
}

// Any 64 bits decode to fields that encode to the same bits.
func TestHeaderBitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Header(rapid.Uint64().Draw(t, "header"))
		again := MakeHeader(h.Type(), h.Length(), h.Epoch(), h.Sequence(), h.Channel())
		assert.Equal(t, h, again.WithPhase(h.Phase()))
	})
}

func TestEntryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pfn := rapid.Uint64Range(0, 1<<40-1).Draw(t, "pfn")
		offset := rapid.Uint64Range(0, abi.PageSize-1).Draw(t, "offset")
		length := rapid.IntRange(1, abi.PageSize-int(offset)).Draw(t, "length")
		e := MakeEntry(pfn<<PageShift|offset, length)
		assert.Equal(t, pfn<<PageShift|offset, e.Address())
		assert.Equal(t, length, e.Length())
	})
}

func TestRunRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address := rapid.Uint64Range(0, 1<<48-1).Draw(t, "address")
		pages := rapid.IntRange(1, RunPages).Draw(t, "pages")
		e := MakeRun(address, pages)
		assert.Equal(t, address, e.RunAddress())
		assert.Equal(t, (address/abi.PageSize+uint64(pages))*abi.PageSize, address+e.RunLength())
	})
}

func TestTailRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		outstanding := rapid.Uint64Range(0, 1<<48-1).Draw(t, "outstanding")
		number := rapid.Uint16().Draw(t, "number")
		g := Gather{Tail: MakeTail(outstanding, number)}
		assert.Equal(t, outstanding, g.Outstanding())
		assert.Equal(t, number, g.Number())
	})
}

// Every channel has a mailbox of its island, islands have blocks of channels,
// and a device of one island deals channels to mailboxes in turn.
func TestHelloDealsChannels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		islands := rapid.IntRange(1, IslandsMax).Draw(t, "islands")
		each := rapid.IntRange(1, MailboxesMax/islands).Draw(t, "mailboxes per island")
		channels := rapid.Uint32Range(abi.TargetFirst, abi.ChannelsMax).Draw(t, "channels")
		h := Hello{Channels: channels, Islands: uint16(islands), Mailboxes: uint16(islands * each)}
		c := rapid.Uint32Range(0, channels-1).Draw(t, "channel")

		assert.Less(t, h.Island(c), islands)
		assert.Equal(t, h.Island(c), h.Mailbox(c)/each, "a mailbox of its island")
		if c > 0 {
			step := h.Island(c) - h.Island(c-1)
			assert.True(t, step == 0 || step == 1, "blocks")
		}
		if islands == 1 {
			assert.Equal(t, int(c)%each, h.Mailbox(c))
		}
	})
}

// Every view of a slot is the slot's own payload.
func TestSlotViewsAlias(t *testing.T) {
	var s Slot
	payload := unsafe.Pointer(&s.Payload)
	for name, view := range map[string]unsafe.Pointer{
		"Bytes": unsafe.Pointer(s.Bytes()), "Ack": unsafe.Pointer(s.Ack()),
		"Begin": unsafe.Pointer(s.Begin()), "Gather": unsafe.Pointer(s.Gather()),
		"Note": unsafe.Pointer(s.Note()), "Close": unsafe.Pointer(s.Close()),
		"Hello": unsafe.Pointer(s.Hello()), "Heartbeat": unsafe.Pointer(s.Heartbeat()),
		"Control": unsafe.Pointer(s.Control()),
	} {
		assert.Equal(t, payload, view, name)
	}
}

// A header tells pages from runs.
func TestSpan(t *testing.T) {
	pages, runs := MakeHeader(TypeIndList, 1, 0, 0, 0), MakeHeader(TypeIndList, 1|ListRuns, 0, 0, 0)
	address, bytes := pages.Span(MakeEntry(4096+16, 100))
	assert.Equal(t, []uint64{4096 + 16, 100}, []uint64{address, bytes})
	address, bytes = runs.Span(MakeRun(4096+16, 3))
	assert.Equal(t, []uint64{4096 + 16, 3*4096 - 16}, []uint64{address, bytes})
}

// Packing and unpacking are on the path of every message.
func TestHeadersAllocateNothing(t *testing.T) {
	var sink uint64
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		h := MakeHeader(TypeDirect, 56, 1, 2, 3).WithPhase(1)
		e := MakeEntry(4096, 4096)
		g := Gather{Tail: MakeTail(1, 2)}
		sink += uint64(h.Channel()) + e.Address() + g.Outstanding()
	}))
	assert.NotZero(t, sink)
}
