package slottrace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/nfcomms/nfcomms/spec"
)

// Summary counts the contents of a trace.
type Summary struct {
	Slots   int    // verified
	Epochs  int    // likewise, of all devices
	Skipped int    // slots of epochs that began before the trace, or beside lost events
	Lost    uint64 // events that the kernel lost, as tracefs counts them
}

// Complete reports whether each slot of the trace was verified, and none was lost.
func (s Summary) Complete() bool { return s.Lost == 0 && s.Skipped == 0 }

// IllegalError names the first slot of an epoch that no path of the tables has.
type IllegalError struct {
	Line   int // of the text, from 1
	Device int // number of /dev/nfcommsN
	Epoch  uint8
	*spec.IllegalError
}

// Error describes the slot.
func (e *IllegalError) Error() string {
	return fmt.Sprintf("line %d, device %d, epoch %d: %v", e.Line, e.Device, e.Epoch, e.IllegalError)
}

// Unwrap returns the error of package spec.
func (e *IllegalError) Unwrap() error { return e.IllegalError }

// ErrTrace is an error of a text that is no trace of slots.
var ErrTrace = errors.New("not a trace of slots")

// epoch is one that is read.
type epoch struct {
	number uint8
	log    spec.Log
	lines  []int
}

// reader reads one text.
type reader struct {
	sum     Summary
	line    int
	devices map[int]*epoch // those whose epoch has all slots since its begin
}

// mostLine is how long a line may be. Those of our events have less than 400 bytes.
const mostLine = 4096

// Verify reads a text of tracefs, its file trace, and verifies each epoch of each device. A slot that no
// path of the tables has is an *IllegalError; another error is one of the text. Events of others are
// passed over. Where events were lost, a device continues with its next epoch.
func Verify(r io.Reader) (Summary, error) {
	t := &reader{devices: map[int]*epoch{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, mostLine), mostLine)
	for lines.Scan() {
		t.line++
		if err := t.take(lines.Bytes()); err != nil {
			return t.sum, err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return t.sum, fmt.Errorf("%w: line %d has more than %d bytes", ErrTrace, t.line+1, mostLine)
	case err != nil:
		return t.sum, err
	}
	if err := t.gap(0); err != nil {
		return t.sum, err
	}
	if t.sum.Epochs == 0 && t.sum.Skipped == 0 && t.sum.Lost == 0 {
		return t.sum, fmt.Errorf("%w: it has none of nfcomms_epoch, nfcomms_slot_in and nfcomms_slot_out", ErrTrace)
	}
	return t.sum, nil
}

// take follows a line.
func (t *reader) take(line []byte) error {
	at := bytes.LastIndex(line, []byte(": nfcomms_")) // of a task, too, the name may be anything
	if at < 0 {
		return t.remark(line)
	}
	name, fields, _ := bytes.Cut(line[at+2:], []byte(": "))
	switch string(name) {
	case "nfcomms_slot_in":
		return t.slot(fields, true)
	case "nfcomms_slot_out":
		return t.slot(fields, false)
	case "nfcomms_epoch":
		return t.begin(fields)
	}
	return nil
}

// remark follows a line of tracefs itself, which says where events are missing.
func (t *reader) remark(line []byte) error {
	if _, rest, ok := bytes.Cut(line, []byte(" [LOST ")); ok && bytes.HasPrefix(line, []byte("CPU:")) {
		n, _ := strconv.ParseUint(string(bytes.TrimSuffix(rest, []byte(" EVENTS]"))), 10, 64)
		return t.gap(max(n, 1))
	}
	if bytes.HasPrefix(line, []byte("##### CPU ")) { // its buffer begins here, and had been overwritten
		return t.gap(0)
	}
	if _, rest, ok := bytes.Cut(line, []byte("# entries-in-buffer/entries-written: ")); ok {
		kept, rest, _ := bytes.Cut(rest, []byte("/"))
		written, _, _ := bytes.Cut(rest, []byte(" "))
		k, err := strconv.ParseUint(string(kept), 10, 64)
		w, err2 := strconv.ParseUint(string(written), 10, 64)
		if err != nil || err2 != nil || k > w {
			return t.wrong("entries %s of %s", kept, written)
		}
		return t.gap(w - k)
	}
	return nil
}

// gap ends each epoch, as events of any may be missing here.
func (t *reader) gap(lost uint64) error {
	t.sum.Lost += lost
	for device := range t.devices {
		if err := t.end(device); err != nil {
			return err
		}
	}
	return nil
}

// end verifies the epoch of a device up to here.
func (t *reader) end(device int) error {
	e := t.devices[device]
	if e == nil {
		return nil
	}
	delete(t.devices, device)
	t.sum.Epochs++
	t.sum.Slots += len(e.log.Records)
	err := spec.Verify(&e.log)
	if illegal := new(spec.IllegalError); errors.As(err, &illegal) {
		return &IllegalError{e.lines[illegal.Index], device, e.number, illegal}
	}
	if err != nil {
		return fmt.Errorf("device %d, epoch %d: %w", device, e.number, err)
	}
	return nil
}

// begin follows nfcomms_epoch.
func (t *reader) begin(fields []byte) error {
	var v [7]uint64
	for i, key := range []string{"device", "epoch", "down", "channels", "mailboxes", "islands", "window"} {
		if !number(fields, key, 32, &v[i]) {
			return t.wrong("nfcomms_epoch without %s: of another version of the module", key)
		}
	}
	e := &epoch{number: uint8(v[1]), log: spec.Log{
		Channels: uint32(v[3]), Mailboxes: uint32(v[4]), Islands: uint32(v[5]), Window: v[6],
	}}
	switch device := int(v[0]); {
	case !number(fields, "limit", 64, &e.log.Limit):
		return t.wrong("nfcomms_epoch without limit: of another version of the module")
	case v[2] != 0: // it ends, and slots may be on their way
		return nil
	default:
		err := t.end(device)
		t.devices[device] = e
		return err
	}
}

// slot follows nfcomms_slot_in or nfcomms_slot_out.
func (t *reader) slot(fields []byte, taken bool) error {
	var device, mailbox uint64
	_, list, ok := bytes.Cut(fields, []byte(" slot={"))
	if !ok || !number(fields, "device", 32, &device) || !number(fields, "mailbox", 32, &mailbox) {
		return t.wrong("a slot without device, mailbox and slot: of another version of the module")
	}
	r := spec.Record{Time: uint64(t.line), Mailbox: uint32(mailbox), Taken: taken}
	list = bytes.TrimRight(list, "}\r")
	for i := range 1 + len(r.Slot.Payload) {
		word, rest, _ := bytes.Cut(list, []byte(","))
		v, err := strconv.ParseUint(string(word), 0, 64)
		if err != nil || (len(rest) == 0) != (i == len(r.Slot.Payload)) {
			return t.wrong("a slot of other than %d words", 1+len(r.Slot.Payload))
		}
		if list = rest; i == 0 {
			r.Slot.Header = v
		} else {
			r.Slot.Payload[i-1] = v
		}
	}
	e := t.devices[int(device)]
	if e == nil {
		t.sum.Skipped++
		return nil
	}
	e.log.Records, e.lines = append(e.log.Records, r), append(e.lines, t.line)
	return nil
}

// wrong is an error of the line.
func (t *reader) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrTrace, t.line, fmt.Sprintf(format, args...))
}

// number reads key=N.
func number(fields []byte, key string, bits int, to *uint64) bool {
	for word := range bytes.FieldsSeq(fields) {
		if rest, ok := bytes.CutPrefix(word, []byte(key+"=")); ok {
			v, err := strconv.ParseUint(string(rest), 10, bits)
			*to = v
			return err == nil
		}
	}
	return false
}
