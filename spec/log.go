package spec

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

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

// VerifyFile verifies a file as [Verify] does a log, and returns the number of its slots that it has
// verified. It keeps few of them in memory, and reads no further than the first that is wrong.
func VerifyFile(r io.Reader) (slots int, err error) {
	f, l, err := openLog(r)
	if err != nil {
		return 0, err
	}
	v := newVerifier(l)
	for {
		rec, err := f.next()
		if err == io.EOF {
			return f.n, v.end()
		}
		if err == nil {
			err = v.take(f.n-1, rec)
		}
		if err != nil {
			return f.n - 1, err
		}
	}
}

// logFile reads the slots of a file.
type logFile struct {
	r    *bufio.Reader
	n    int    // slots read
	time uint64 // of the last one
	room []Record
}

// openLog reads the first words of a file, and no further where these are wrong.
func openLog(r io.Reader) (*logFile, *Log, error) {
	f := &logFile{r: bufio.NewReaderSize(r, 8*logRecord<<10)}
	var first [8 * logHeader]byte
	_, short := io.ReadFull(f.r, first[:])
	if short != nil && short != io.EOF && short != io.ErrUnexpectedEOF {
		return nil, nil, short
	}
	l, err := readHeader(&first, short != nil)
	return f, l, err
}

// next reads a slot; io.EOF if there is none.
func (f *logFile) next() (*Record, error) {
	var data [8 * logRecord]byte
	switch _, err := io.ReadFull(f.r, data[:]); {
	case err == io.ErrUnexpectedEOF:
		return nil, fmt.Errorf("%w: cut short after %d slots", ErrLog, f.n)
	case err != nil:
		return nil, err
	}
	if len(f.room) == 0 {
		f.room = make([]Record, 1<<10) // the verifier may keep one of them
	}
	rec := &f.room[0]
	f.room = f.room[1:]
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
	rec.Time, rec.Mailbox, rec.Taken = word(0), uint32(word(1)), word(1)>>32 != 0
	switch {
	case word(1)>>33 != 0:
		return nil, fmt.Errorf("%w: slot %d has reserved bits", ErrLog, f.n)
	case rec.Time < f.time:
		return nil, fmt.Errorf("%w: slot %d is older than the one before it", ErrLog, f.n)
	}
	rec.Slot.Header = word(2)
	for k := range rec.Slot.Payload {
		rec.Slot.Payload[k] = word(3 + k)
	}
	f.n, f.time = f.n+1, rec.Time
	return rec, nil
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
	case max(word(4), word(5), word(6)) > math.MaxUint32:
		return nil, fmt.Errorf("%w: a device of %d channels, %d mailboxes and %d islands", ErrLog, word(4), word(5), word(6))
	}
	l := &Log{
		Window: word(2), Limit: word(3), Channels: uint32(word(4)), Mailboxes: uint32(word(5)), Islands: uint32(word(6)),
	}
	return l, l.check()
}

// check holds the bounds to those of the protocol.
func (l *Log) check() error {
	switch {
	case l.Window == 0 || l.Window > wire.WindowMax:
		return fmt.Errorf("%w: a window of %d lists", ErrLog, l.Window)
	case l.Channels == 0 || l.Channels > abi.ChannelsMax:
		return fmt.Errorf("%w: a device of %d channels", ErrLog, l.Channels)
	case l.Islands == 0 || l.Islands > l.Mailboxes || l.Mailboxes > wire.MailboxesMax || l.Mailboxes%l.Islands != 0:
		return fmt.Errorf("%w: a device of %d mailboxes and %d islands", ErrLog, l.Mailboxes, l.Islands)
	}
	return nil
}
