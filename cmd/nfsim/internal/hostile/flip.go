//go:build cgo

package hostile

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Offsets in the mailbox area (struct nfc_area, struct nfc_mailbox).
const (
	areaSize          = 8
	areaMailboxOffset = 24
	areaMailboxStride = 32
	areaPageWords     = 24 // eight-byte words up to the heartbeat
	mailboxD2HHead    = 64
	mailboxSlots      = 128
	ahead             = 4 // slots past the host's counter that change
)

// flip changes a bit of a word that the host may be reading, in its own memory or in the area, and puts
// it back, until the epoch ends.
func (l *epoch) flip() {
	var r *rand.Rand
	l.dev.chance(func(from *rand.Rand) { r = rand.New(rand.NewPCG(from.Uint64(), 0)) })
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		if there := l.script.Load().Polled(); there != nil {
			for range len(there) {
				l.flipThere(there[r.IntN(len(there))], 1<<r.IntN(64))
			}
		} else {
			l.flipHere(l.polled(r), 1<<r.IntN(64))
		}
	}
}

// phase is the bit that says that a slot is new: another would only hide the slot.
const phase = 1 << 7

// flipHere changes a word of the area.
func (l *epoch) flipHere(at, bit uint64) {
	if bit != phase {
		was := l.word(at)
		l.setWord(at, was^bit)
		l.setWord(at, was)
	}
}

// flipThere changes a word of the host's memory.
func (l *epoch) flipThere(at, bit uint64) {
	var b [8]byte
	if bit == phase || l.bus.Read(b[:], at) != abi.OK {
		return
	}
	was := binary.LittleEndian.Uint64(b[:])
	l.bus.Write(at, binary.LittleEndian.AppendUint64(nil, was^bit))
	l.bus.Write(at, b[:])
}

// polled picks a word of the next slot, or of the first page, up to the heartbeat.
func (l *epoch) polled(r *rand.Rand) uint64 {
	offset, stride := l.word(areaMailboxOffset), l.word(areaMailboxStride)
	slots := (stride - mailboxSlots) / (2 * wire.SlotSize)
	mailboxes := (l.word(areaSize) - offset) / stride
	if r.IntN(8) == 0 {
		return 8 * r.Uint64N(areaPageWords)
	}
	mailbox := offset + stride*r.Uint64N(mailboxes)
	slot := (l.word(mailbox+mailboxD2HHead) + r.Uint64N(ahead)) % slots
	return mailbox + mailboxSlots + (slots+slot)*wire.SlotSize + 8*r.Uint64N(8)
}

// word reads eight bytes of the area.
func (l *epoch) word(at uint64) uint64 {
	var b [8]byte
	_ = l.bus.Load(at, b[:]) // inside: the device laid the area itself
	return binary.LittleEndian.Uint64(b[:])
}

func (l *epoch) setWord(at, v uint64) {
	_ = l.bus.Store(at, binary.LittleEndian.AppendUint64(nil, v))
}
