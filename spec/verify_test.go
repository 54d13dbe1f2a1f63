package spec

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// record makes one.
func record(taken bool, s wire.Slot, channel uint32) Record {
	h := wire.Header(s.Header)
	s.Header = uint64(wire.MakeHeader(h.Type(), h.Length(), h.Epoch(), h.Sequence(), channel))
	return Record{Mailbox: 1, Taken: taken, Slot: s}
}

// opened is the log of an OPEN of a channel.
func opened(o *talk.Open, channel uint32) []Record {
	var s wire.Slot
	s.Header = uint64(wire.MakeHeader(wire.TypeDirect, abi.PayloadSize, talk.Epoch, 1, 0))
	*s.Control() = wire.Control{Op: uint16(wire.ControlOpen), Request: 7, A: uint64(channel)}
	reply, ack := s, s
	*reply.Control() = wire.Control{Op: uint16(wire.ControlOpen), Request: 7, A: o.Next[0], B: o.Next[1], C: o.Generation}
	ack.Header = uint64(wire.MakeHeader(wire.TypeAck, abi.PayloadSize, talk.Epoch, 1, 0))
	ack.Payload = [7]uint64{}
	*ack.Ack() = wire.Ack{Transaction: 1, State: wire.StateConsumed}
	answer := ack
	*answer.Ack() = wire.Ack{Transaction: 1, State: wire.StateConsumed, Direction: uint32(abi.D2H)}
	return []Record{{Slot: s}, {Taken: true, Slot: ack}, {Taken: true, Slot: reply}, {Slot: answer}}
}

// logs makes a log of each conversation that both sides play honestly.
func logs(t *testing.T) map[string]*Log {
	t.Helper()
	list, err := talk.Load(os.DirFS("../internal/proto/testdata"), proto.Default())
	require.NoError(t, err)
	all := map[string]*Log{}
	for _, c := range list {
		if c.DeviceOnly != "" {
			continue
		}
		l := &Log{Window: c.Open.Window, Limit: c.Open.Limit, Channels: 64, Mailboxes: 2, Islands: 1, Records: opened(&c.Open, talk.Channel)}
		for i := range c.Steps {
			switch s := &c.Steps[i]; s.Kind {
			case talk.HostPuts:
				l.Records = append(l.Records, record(false, s.Slot, talk.Channel))
			case talk.DevicePuts:
				r := record(true, s.Slot, talk.Channel)
				r.Slot.Header = s.Slot.Header
				l.Records = append(l.Records, r)
			}
		}
		all[c.Name] = l
	}
	return all
}

// TestVerifyConversations: the log of an honest conversation is accepted, and that of a device that
// lies is refused at the slot that the host takes for a fault.
func TestVerifyConversations(t *testing.T) {
	list, err := talk.Load(os.DirFS("../internal/proto/testdata"), proto.Default())
	require.NoError(t, err)
	all := logs(t)
	faults := 0
	for _, c := range list {
		l := all[c.Name]
		if l == nil {
			continue
		}
		err := Verify(l)
		if last := c.Steps[len(c.Steps)-1]; last.Kind != talk.DevicePuts || last.Event != proto.EventFault {
			require.NoError(t, err, c.Name)
			continue
		}
		var illegal *IllegalError
		require.ErrorAs(t, err, &illegal, c.Name)
		require.Equal(t, len(l.Records)-1, illegal.Index, "%s: %v", c.Name, err)
		faults++
	}
	require.Greater(t, faults, 50)
}

// TestVerifySeeded: 100 logs with one illegal slot each are refused at that slot.
func TestVerifySeeded(t *testing.T) {
	all := logs(t)
	var names []string
	for name, l := range all {
		if Verify(l) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	random := rand.New(rand.NewPCG(1, 2))
	for n := 0; n < 100; {
		name := names[random.IntN(len(names))]
		l := *all[name]
		l.Records = slices.Clone(l.Records)
		at := 4 + random.IntN(len(l.Records)-4)
		if !seed(random, &l, at) {
			continue
		}
		n++
		err := Verify(&l)
		var illegal *IllegalError
		require.ErrorAs(t, err, &illegal, "%s: slot %d", name, at)
		require.Equal(t, at, illegal.Index, "%s: %v", name, err)
		require.NotEmpty(t, illegal.Before)
	}
}

// seed makes a slot illegal; false if that slot is not.
func seed(random *rand.Rand, l *Log, at int) bool {
	r := &l.Records[at]
	h := wire.Header(r.Slot.Header)
	if h.Channel() != talk.Channel || h.Epoch() != talk.Epoch {
		return false
	}
	switch kind := random.IntN(4); {
	case kind == 0: // what neither side may put
		r.Slot.Header = uint64(wire.MakeHeader(wire.TypeHello, abi.PayloadSize, h.Epoch(), h.Sequence(), h.Channel()))
	case kind == 1 && r.Taken && h.Type() != wire.TypeClose: // what belongs to the future
		id := r.Slot.Payload[0] + 9
		if h.Type() == wire.TypeDirect || h.Type() == wire.TypeAnswer {
			id = uint64(h.Sequence()) + 9
		} else {
			r.Slot.Payload[0] = id
		}
		r.Slot.Header = uint64(wire.MakeHeader(h.Type(), h.Length(), h.Epoch(), uint16(id), h.Channel()))
	case kind == 2 && !r.Taken: // a FIN of nothing
		r.Slot.Header = uint64(wire.MakeHeader(wire.TypeFin, abi.PayloadSize, h.Epoch(), 999, h.Channel()))
		r.Slot.Payload = [7]uint64{999}
	case kind == 3 && !r.Taken && h.Type() != wire.TypeDirect && h.Type() != wire.TypeCall && h.Type() != wire.TypeIndList && h.Type() != wire.TypeClose:
		r.Slot.Payload[0] += 5
	default:
		return false
	}
	return true
}

// TestVerifyReordered: one message twice, a reordered list, an answer that is missing.
func TestVerifyReordered(t *testing.T) {
	all := logs(t)
	for _, c := range []struct {
		name  string
		at    int
		other func(r []Record) []Record
	}{
		{"message/one follows the other", 6, func(r []Record) []Record { return slices.Insert(r, 6, r[4]) }},
		{"transfer_h2d/three lists in a wide window", 7, func(r []Record) []Record { r[7], r[8] = r[8], r[7]; return r }},
		{"message/one follows the other", 5, func(r []Record) []Record { return slices.Delete(r, 5, 6) }},
		{"message/one follows the other", 4, func(r []Record) []Record { r[4], r[5] = r[5], r[4]; return r }},
		{"offer/one follows the other", 5, func(r []Record) []Record { return slices.Delete(r, 5, 6) }},
		{"transfer_h2d/one list, to a target that waits", 6, func(r []Record) []Record { return slices.Delete(r, 6, 7) }},
	} {
		l := *all[c.name]
		l.Records = c.other(slices.Clone(l.Records))
		var illegal *IllegalError
		require.ErrorAs(t, Verify(&l), &illegal, c.name)
		require.Equal(t, c.at, illegal.Index, "%s: %v", c.name, illegal)
		require.NotEmpty(t, illegal.Allowed, "%v", illegal)
	}
}

// TestVerifyEarly: a host keeps four slots of a channel until the reply that opens it.
func TestVerifyEarly(t *testing.T) {
	message := record(true, wire.Slot{Header: uint64(wire.MakeHeader(wire.TypeDirect, 0, talk.Epoch, 1, 0))}, talk.Channel)
	l := &Log{Window: 4, Limit: 1 << 20, Channels: 64, Mailboxes: 2, Islands: 1}
	l.Records = append(opened(&talk.Open{Next: [2]uint64{1, 1}}, talk.Channel)[:2], slices.Repeat([]Record{message}, 4)...)
	require.NoError(t, Verify(l))
	l.Records = append(l.Records, message)
	var illegal *IllegalError
	require.ErrorAs(t, Verify(l), &illegal)
	require.Equal(t, 2+4, illegal.Index, "%v", illegal)
}

// TestVerifyRequests: a log has 16 requests of channels without a reply at a time. A request that the host
// took back is none of them.
func TestVerifyRequests(t *testing.T) {
	slot := func(kind wire.Type, id int, fill func(s *wire.Slot)) wire.Slot {
		s := wire.Slot{Header: uint64(wire.MakeHeader(kind, abi.PayloadSize, talk.Epoch, uint16(id), 0))}
		fill(&s)
		return s
	}
	requests := func(n int, back bool) *Log {
		l := &Log{Window: 4, Limit: 1 << 20, Channels: 64, Mailboxes: 2, Islands: 1}
		for id := 1; id <= n; id++ {
			l.Records = append(l.Records, Record{Slot: slot(wire.TypeDirect, id, func(s *wire.Slot) {
				*s.Control() = wire.Control{Op: uint16(wire.ControlOpen), Request: uint32(id), A: 2}
			})})
			if back {
				note := wire.Note{Transaction: uint64(id), Direction: uint32(abi.H2D)}
				l.Records = append(l.Records,
					Record{Slot: slot(wire.TypeWithdraw, id, func(s *wire.Slot) { *s.Note() = note })},
					Record{Taken: true, Slot: slot(wire.TypeWithdrawn, id, func(s *wire.Slot) { *s.Note() = note })})
				continue
			}
			l.Records = append(l.Records, Record{Taken: true, Slot: slot(wire.TypeAck, id, func(s *wire.Slot) {
				*s.Ack() = wire.Ack{Transaction: uint64(id), State: wire.StateConsumed}
			})})
		}
		return l
	}
	require.NoError(t, Verify(requests(100, true)))
	require.NoError(t, Verify(requests(16, false)))
	var illegal *IllegalError
	require.ErrorAs(t, Verify(requests(17, false)), &illegal)
	require.Equal(t, 2*16, illegal.Index)
	require.ErrorContains(t, illegal, "more than 16 requests of channels without a reply")
}

// TestVerifyCuts: the kernel module cuts a buffer as its pages lie, so that each list may have another
// number of bytes. Bytes behind the lists that were put are refused, as is a list without bytes.
func TestVerifyCuts(t *testing.T) {
	o := talk.Open{Next: [2]uint64{1, 1}, Generation: 3}
	begin := wire.Slot{Header: uint64(wire.MakeHeader(wire.TypeIndBegin, abi.PayloadSize, talk.Epoch, 1, 0))}
	begin.Begin().Transaction, begin.Begin().Size = 1, 50_000
	list := func(k int, rest uint64) Record {
		s := wire.Slot{Header: uint64(wire.MakeHeader(wire.TypeIndList, 1|wire.ListRuns, talk.Epoch, 1, 0))}
		s.Gather().Tail = wire.MakeTail(rest, uint16(k))
		return record(false, s, talk.Channel)
	}
	ack := func(kind wire.Type, state wire.State, lists uint32, processed uint64) Record {
		s := wire.Slot{Header: uint64(wire.MakeHeader(kind, abi.PayloadSize, talk.Epoch, 1, 0))}
		*s.Ack() = wire.Ack{Transaction: 1, State: state, Lists: lists, Processed: processed, Outstanding: 50_000 - processed}
		return record(true, s, talk.Channel)
	}
	ready, moving := ack(wire.TypeAck, wire.StateReady, 0, 0), ack(wire.TypeAck, wire.StateMoving, 1, 4000)
	done := ack(wire.TypeDone, wire.StateDone, 3, 50_000)
	for _, c := range []struct {
		records []Record
		illegal int // -1: none
	}{
		{[]Record{list(0, 46_000), ready, moving, list(1, 45_999), list(2, 0), done}, -1},
		{[]Record{list(0, 46_000), ready, ack(wire.TypeAck, wire.StateMoving, 1, 4001)}, 2},
		{[]Record{list(0, 46_000), ready, moving, list(1, 45_999), done}, 4},
		{[]Record{list(0, 50_000), ready}, 0},
	} {
		head := append(opened(&o, talk.Channel), record(false, begin, talk.Channel))
		l := &Log{Window: 4, Limit: 1 << 20, Channels: 64, Mailboxes: 2, Islands: 1, Records: append(head, c.records...)}
		err := Verify(l)
		if c.illegal < 0 {
			require.NoError(t, err)
			continue
		}
		var illegal *IllegalError
		require.ErrorAs(t, err, &illegal)
		require.Equal(t, len(head)+c.illegal, illegal.Index, "%v", err)
	}
}

// TestVerifyLateReady: a host that is asked whether it receives may answer once the message is there. Its
// READY is of that message where it has not looked at it yet, else of the next one.
func TestVerifyLateReady(t *testing.T) {
	slot := func(taken bool, kind wire.Type, sequence uint16, fill func(s *wire.Slot)) Record {
		s := wire.Slot{Header: uint64(wire.MakeHeader(kind, abi.PayloadSize, talk.Epoch, sequence, 0))}
		fill(&s)
		return record(taken, s, talk.Channel)
	}
	note := func(id uint64) func(s *wire.Slot) {
		return func(s *wire.Slot) { *s.Note() = wire.Note{Transaction: id, Direction: uint32(abi.D2H)} }
	}
	for id, legal := range map[uint64]bool{0: false, 1: true, 2: true, 3: false} {
		l := &Log{Window: 4, Limit: 1 << 20, Channels: 64, Mailboxes: 2, Islands: 1}
		l.Records = append(opened(&talk.Open{Next: [2]uint64{1, 1}}, talk.Channel),
			slot(true, wire.TypeOffer, 1, note(1)),
			slot(true, wire.TypeDirect, 1, func(*wire.Slot) {}),
			slot(false, wire.TypeReady, uint16(id), note(id)),
			slot(false, wire.TypeAck, 1, func(s *wire.Slot) {
				*s.Ack() = wire.Ack{Transaction: 1, Direction: uint32(abi.D2H), State: wire.StateConsumed}
			}))
		require.Equal(t, legal, Verify(l) == nil, "READY of %d: %v", id, Verify(l))
	}
}

// TestVerifyBounds: a log of a device that cannot be is an error of its own.
func TestVerifyBounds(t *testing.T) {
	require.ErrorIs(t, Verify(&Log{Records: make([]Record, 1)}), ErrLog)
}

// endless is a file of zeros without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestLogFile: a log survives its file, and what is none is refused in a line.
func TestLogFile(t *testing.T) {
	l := logs(t)["transfer_h2d/three lists in a wide window"]
	var file bytes.Buffer
	_, err := l.WriteTo(&file)
	require.NoError(t, err)
	f, got, err := openLog(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	for rec, err := f.next(); err != io.EOF; rec, err = f.next() {
		require.NoError(t, err)
		got.Records = append(got.Records, *rec)
	}
	require.Equal(t, l, got)
	n, err := VerifyFile(bytes.NewReader(file.Bytes()))
	require.NoError(t, err)
	require.Equal(t, len(l.Records), n)
	change := func(at int, to byte) []byte {
		data := bytes.Clone(file.Bytes())
		data[at] = to
		return data
	}
	for want, data := range map[string][]byte{
		"does not begin like one": []byte("package spec"),
		"version 2":               change(8, 2),
		"cut short after":         file.Bytes()[:file.Len()-8],
		"before its first slot":   file.Bytes()[:20],
		"slot 1 is older":         change(8*logHeader+7, 1),
		"window of 0":             change(16, 0),
		"device of 0 channels":    change(32, 0),
		"2 mailboxes and 3":       change(48, 3),
		"reserved bits":           change(8*(logHeader+1)+7, 1),
	} {
		_, err := VerifyFile(bytes.NewReader(data))
		require.ErrorIs(t, err, ErrLog)
		require.ErrorContains(t, err, want)
	}
	require.False(t, errors.Is(Verify(l), ErrLog))
	_, err = VerifyFile(endless{})
	require.ErrorContains(t, err, "does not begin like one")
	var illegal *IllegalError
	n, err = VerifyFile(io.MultiReader(bytes.NewReader(file.Bytes()), endless{}))
	require.ErrorAs(t, err, &illegal)
	require.Equal(t, len(l.Records), n)
	n, err = VerifyFile(io.MultiReader(bytes.NewReader(file.Bytes()[:8*logHeader]), endless{}))
	require.ErrorAs(t, err, &illegal)
	require.Zero(t, n)
}

// BenchmarkVerify reports slots a second.
func BenchmarkVerify(b *testing.B) {
	o := talk.Open{Next: [2]uint64{1, 1}, Generation: 3}
	l := &Log{Window: 4, Limit: 1 << 40, Channels: 64, Mailboxes: 2, Islands: 1, Records: opened(&o, talk.Channel)}
	for id := uint64(1); id <= 100_000; id++ {
		var put, ack wire.Slot
		put.Header = uint64(wire.MakeHeader(wire.TypeDirect, 8, talk.Epoch, uint16(id), talk.Channel))
		ack.Header = uint64(wire.MakeHeader(wire.TypeAck, abi.PayloadSize, talk.Epoch, uint16(id), talk.Channel))
		*ack.Ack() = wire.Ack{Transaction: id, State: wire.StateConsumed}
		l.Records = append(l.Records, Record{Mailbox: 1, Slot: put}, Record{Mailbox: 1, Taken: true, Slot: ack})
	}
	begin := time.Now()
	for b.Loop() {
		require.NoError(b, Verify(l))
	}
	b.ReportMetric(float64(b.N*len(l.Records))/time.Since(begin).Seconds(), "slots/s")
}
