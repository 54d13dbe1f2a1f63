package spec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Record is one slot of a log: the host put it, or took it from a ring.
type Record struct {
	Time    uint64 // nanoseconds, from any start
	Mailbox uint32
	Taken   bool // from the device
	Slot    wire.Slot
}

// Log is what passed between a host and a device, in the order in which the host saw it.
type Log struct {
	Window    uint64 // lists in flight, as agreed in HELLO
	Limit     uint64 // bytes of the largest transfer
	Channels  uint32 // of the device
	Mailboxes uint32 // likewise
	Islands   uint32 // likewise
	Records   []Record
}

// A file begins with its magic and version, window, limit, channels, mailboxes and islands, as words
// of 8 bytes, and has a record of 80 bytes for each slot: time, {mailbox:32 | taken:1}, and the slot's eight words. All is
// little-endian.
const (
	logMagic   = 0x474f4c54_4f4c534e // "NSLOTLOG"
	logVersion = 1
	logHeader  = 7
	logRecord  = 10
)

// ErrLog is an error of a file that is no log, or of another version, or was cut short.
var ErrLog = errors.New("not a log of slots")

// WriteTo writes the log as a file.
func (l *Log) WriteTo(w io.Writer) (int64, error) {
	words := make([]uint64, 0, logHeader+logRecord*len(l.Records))
	words = append(words, logMagic, logVersion, l.Window, l.Limit, uint64(l.Channels), uint64(l.Mailboxes), uint64(l.Islands))
	for i := range l.Records {
		r := &l.Records[i]
		place := uint64(r.Mailbox)
		if r.Taken {
			place |= 1 << 32
		}
		words = append(append(words, r.Time, place, r.Slot.Header), r.Slot.Payload[:]...)
	}
	return int64(8 * len(words)), binary.Write(w, binary.LittleEndian, words)
}

// ReadLog reads a file. It reads no further than its first words where these are wrong.
func ReadLog(r io.Reader) (*Log, error) {
	var first [8 * logHeader]byte
	_, short := io.ReadFull(r, first[:])
	if short != nil && short != io.EOF && short != io.ErrUnexpectedEOF {
		return nil, short
	}
	l, err := readHeader(&first, short != nil)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if len(data)%(8*logRecord) != 0 {
		return nil, fmt.Errorf("%w: cut short after %d slots", ErrLog, len(data)/(8*logRecord))
	}
	l.Records = make([]Record, len(data)/(8*logRecord))
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	for i := range l.Records {
		at, rec := i*logRecord, &l.Records[i]
		rec.Time, rec.Mailbox, rec.Taken = word(at), uint32(word(at+1)), word(at+1)>>32 != 0
		switch {
		case word(at+1)>>33 != 0:
			return nil, fmt.Errorf("%w: slot %d has reserved bits", ErrLog, i)
		case i > 0 && rec.Time < l.Records[i-1].Time:
			return nil, fmt.Errorf("%w: slot %d is older than the one before it", ErrLog, i)
		}
		rec.Slot.Header = word(at + 2)
		for k := range rec.Slot.Payload {
			rec.Slot.Payload[k] = word(at + 3 + k)
		}
	}
	return l, nil
}

// readHeader reads what a file begins with, which may be short.
func readHeader(first *[8 * logHeader]byte, short bool) (*Log, error) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(first[8*i:]) }
	switch {
	case word(0) != logMagic:
		return nil, fmt.Errorf("%w: it does not begin like one", ErrLog)
	case short:
		return nil, fmt.Errorf("%w: cut short before its first slot", ErrLog)
	case word(1) != logVersion:
		return nil, fmt.Errorf("%w: version %d, this program knows %d", ErrLog, word(1), logVersion)
	case word(2) == 0 || word(2) > abi.WindowMax:
		return nil, fmt.Errorf("%w: a window of %d lists", ErrLog, word(2))
	case word(4) == 0 || word(4) > abi.ChannelsMax:
		return nil, fmt.Errorf("%w: a device of %d channels", ErrLog, word(4))
	case word(6) == 0 || word(6) > word(5) || word(5) > abi.MailboxesMax || word(5)%word(6) != 0:
		return nil, fmt.Errorf("%w: a device of %d mailboxes and %d islands", ErrLog, word(5), word(6))
	}
	return &Log{
		Window: word(2), Limit: word(3), Channels: uint32(word(4)), Mailboxes: uint32(word(5)), Islands: uint32(word(6)),
	}, nil
}
