package scripted

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/nfcomms/nfcomms/internal/wire"
)

// there is memory of the host's own that takes the place of parts of the area, once the host has said
// where it is (docs/protocol.md, wire.CapHostRings). The zero value: nothing does. The device's lock
// guards it.
type there struct {
	host Poster // nil: the device does not offer it
	at   uint64 // bus address of its wire.HostArea; 0: not known
	lost bool   // something did not get through: nothing is written any more
}

// Poster is a Host in whose memory a device may write what the host polls. The device's lock is held
// during a call.
type Poster interface {
	// Post writes bytes behind all that was posted; false if they are out of reach.
	Post(address uint64, p []byte) bool
	// Peek reads bytes behind all that was posted.
	Peek(p []byte, address uint64) bool
}

// settled reports whether it is known where rings to the host are: not before its answer.
func (t *there) settled(p *wire.Area) bool {
	if t.host == nil || t.at != 0 {
		return true
	}
	h := wire.Header(atomic.LoadUint64(&p.HostHello.Header))
	if h.Type() != wire.TypeHello {
		return false
	}
	if p.HostHello.Hello().Capabilities&wire.CapHostRings != 0 {
		t.at = atomic.LoadUint64(&p.HostArea)
	}
	return true
}

// post writes words, in the order of their addresses but for the first, which comes last.
func (t *there) post(offset uint64, words ...uint64) {
	b := make([]byte, 0, wire.SlotSize)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	if len(b) > 8 && !t.lost {
		t.lost = !t.host.Post(t.at+offset+8, b[8:])
	}
	if !t.lost {
		t.lost = !t.host.Post(t.at+offset, b[:8])
	}
}

// load reads a word; behind everything that was posted. 0 if that cannot be.
func (t *there) load(offset uint64, size int) uint64 {
	var b [8]byte
	if !t.lost {
		t.lost = !t.host.Peek(b[:size], t.at+offset)
	}
	return binary.LittleEndian.Uint64(b[:])
}

// Offsets in wire.HostArea.
const (
	thereBeat    = uint64(unsafe.Offsetof(wire.HostArea{}.Heartbeat))
	thereIsland  = uint64(unsafe.Offsetof(wire.HostArea{}.Island))
	thereMailbox = uint64(unsafe.Offsetof(wire.HostArea{}.Mailbox))
	thereD2HHead = uint64(unsafe.Offsetof(wire.Mailbox{}.D2HHead))
)

// thereRing is where the d2h ring of a mailbox is.
func (sh Shape) thereRing(mailbox int) uint64 {
	return wire.HostAreaSize + uint64(mailbox*sh.Slots*wire.SlotSize)
}

// therePark is where the park word of a channel is.
func (sh Shape) therePark(channel uint32) uint64 {
	return sh.thereRing(sh.Mailboxes) + 4*uint64(channel)
}

// Polled returns where in its memory the host polls words of the device: what it tells of itself, how
// far it consumed, and the slots that come next. It is nothing for a host whose rings are in the area.
func (s *Device) Polled() (words []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := &s.area.own
	if own.at == 0 || own.lost {
		return nil
	}
	add := func(offset, bytes uint64) {
		for ; bytes > 0; offset, bytes = offset+8, bytes-8 {
			words = append(words, own.at+offset)
		}
	}
	add(thereBeat, wire.SlotSize)
	for i := range s.shape.Islands {
		add(thereIsland+uint64(i)*wire.SlotSize, 8)
	}
	for i := range s.area.mailboxes {
		b := &s.area.mailboxes[i]
		add(b.counters, 8)
		for k := range uint64(pollsAhead) {
			add(b.ring+(b.tail+k)%uint64(len(b.d2h))*wire.SlotSize, wire.SlotSize)
		}
	}
	return words
}

// pollsAhead is how many slots a host may look at before they are published.
const pollsAhead = 4
