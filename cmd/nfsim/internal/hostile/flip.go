//go:build cgo

package hostile

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/nfcomms/nfcomms/bridge/abi"
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

// flip changes a bit of a slot that the host may be reading, or of the area
// page, and puts it back, until the epoch ends.
func (l *epoch) flip() {
	var r *rand.Rand
	l.dev.chance(func(from *rand.Rand) { r = rand.New(rand.NewPCG(from.Uint64(), 0)) })
	offset, stride := l.word(areaMailboxOffset), l.word(areaMailboxStride)
	slots := (stride - mailboxSlots) / (2 * abi.SlotSize)
	mailboxes := (l.word(areaSize) - offset) / stride
	for {
		select {
		case <-l.stop:
			return
		default:
		}
		at := 8 * r.Uint64N(areaPageWords)
		if r.IntN(8) != 0 {
			mailbox := offset + stride*r.Uint64N(mailboxes)
			slot := (l.word(mailbox+mailboxD2HHead) + r.Uint64N(ahead)) % slots
			at = mailbox + mailboxSlots + (slots+slot)*abi.SlotSize + 8*r.Uint64N(8)
		}
		bit := uint64(1) << r.IntN(64)
		if bit == 1<<7 { // the phase: it would only hide the slot
			continue
		}
		was := l.word(at)
		l.setWord(at, was^bit)
		l.setWord(at, was)
	}
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
