package mailbox

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

const listBytes = abi.ListEntries * abi.PageSize

// sendAll takes every list the ledger allows.
func sendAll(l *ledger) (n int) {
	for {
		if _, ok := l.next(); !ok {
			return n
		}
		l.sent++
		n++
	}
}

// tenLists is the account of ten full lists, window 4.
func tenLists(ready bool) ledger {
	return newLedger(split{0x1000, 10 * listBytes}, 4, ready)
}

func ackOf(state abi.State, lists uint32) abi.Ack {
	return abi.Ack{State: state, Lists: lists, Processed: uint64(lists) * listBytes, Outstanding: uint64(10-lists) * listBytes}
}

func TestLedgerWaitsForReadyAndWindow(t *testing.T) {
	l := tenLists(false)
	require.Equal(t, 1, sendAll(&l), "list 0 only")
	a := ackOf(abi.StateReady, 0)
	v, err := l.record(abi.TypeAck, &a)
	require.NoError(t, err)
	require.Equal(t, verdictProgress, v)
	require.Equal(t, 3, sendAll(&l), "the window")
	a = ackOf(abi.StateMoving, 3)
	_, err = l.record(abi.TypeAck, &a)
	require.NoError(t, err)
	require.Equal(t, 3, sendAll(&l))
	a = ackOf(abi.StateMoving, 7)
	_, err = l.record(abi.TypeAck, &a)
	require.NoError(t, err)
	require.Equal(t, 3, sendAll(&l), "no more than there are")
	d := abi.Ack{State: abi.StateDone, Lists: 10, Processed: 10 * listBytes}
	v, err = l.record(abi.TypeDone, &d)
	require.NoError(t, err)
	require.Equal(t, verdictDone, v)
}

func TestLedgerRepeats(t *testing.T) {
	l := tenLists(true)
	require.Equal(t, 4, sendAll(&l))
	for i := range abi.RepeatsMax {
		a := abi.Ack{State: abi.StateRepeat, Lists: 2, Processed: 2 * listBytes, Status: abi.ErrBusy}
		v, err := l.record(abi.TypeAck, &a)
		require.NoError(t, err)
		require.Equal(t, verdictProgress, v)
		k, ok := l.next()
		require.True(t, ok)
		require.EqualValues(t, 2, k)
		require.Equal(t, 4, sendAll(&l), i)
	}
	a := abi.Ack{State: abi.StateRepeat, Lists: 2, Processed: 2 * listBytes}
	v, err := l.record(abi.TypeAck, &a)
	require.NoError(t, err)
	require.Equal(t, verdictGiveUp, v)
	require.EqualValues(t, 2+4+4, l.repeated)
}

func TestLedgerWidensListNumbers(t *testing.T) {
	l := newLedger(split{0, 1 << 47}, 8, true)
	l.sent, l.acked = 1<<32+2, 1<<32-2
	l.processed = l.cut.upTo(l.acked)
	a := abi.Ack{State: abi.StateMoving, Lists: 1, Processed: l.cut.upTo(1<<32 + 1)}
	_, err := l.record(abi.TypeAck, &a)
	require.NoError(t, err)
	require.EqualValues(t, 1<<32+1, l.acked)
}

func TestLedgerViolations(t *testing.T) {
	whole := uint64(10 * listBytes)
	for _, c := range []struct {
		name string
		typ  abi.Type
		ack  abi.Ack
	}{
		{"lists not sent", abi.TypeAck, abi.Ack{State: abi.StateMoving, Lists: 5}},
		{"lists going back", abi.TypeAck, abi.Ack{State: abi.StateMoving, Lists: 0}},
		{"bytes not sent", abi.TypeAck, abi.Ack{State: abi.StateMoving, Lists: 4, Processed: 5 * listBytes}},
		{"bytes going back", abi.TypeAck, abi.Ack{State: abi.StateMoving, Lists: 4, Processed: 1}},
		{"status on ack", abi.TypeAck, abi.Ack{State: abi.StateMoving, Lists: 4, Status: abi.ErrDMA}},
		{"ready twice", abi.TypeAck, abi.Ack{State: abi.StateReady, Lists: 1, Processed: listBytes}},
		{"ack consumed", abi.TypeAck, abi.Ack{State: abi.StateConsumed, Lists: 1, Processed: listBytes}},
		{"ack failed", abi.TypeAck, abi.Ack{State: abi.StateFailed, Lists: 1, Processed: listBytes}},
		{"unknown state", abi.TypeAck, abi.Ack{State: abi.StateCount}},
		{"unknown status", abi.TypeError, abi.Ack{State: abi.StateFailed, Status: abi.StatusCount}},
		{"repeat of the unsent", abi.TypeAck, abi.Ack{State: abi.StateRepeat, Lists: 4, Processed: listBytes}},
		{"repeat of the acked", abi.TypeAck, abi.Ack{State: abi.StateRepeat, Lists: 0, Processed: listBytes}},
		{"done too soon", abi.TypeDone, abi.Ack{State: abi.StateDone, Processed: whole}},
		{"error without status", abi.TypeError, abi.Ack{State: abi.StateFailed}},
		{"error with too many bytes", abi.TypeError, abi.Ack{State: abi.StateFailed, Status: abi.ErrDMA, Processed: whole + 1}},
		{"error with another state", abi.TypeError, abi.Ack{State: abi.StateDone, Status: abi.ErrDMA}},
		{"error in no entry", abi.TypeError, abi.Ack{State: abi.StateFailed, Status: abi.ErrDMA, FaultIndex: abi.ListEntries}},
		{"aborted unasked", abi.TypeAborted, abi.Ack{State: abi.StateFailed, Status: abi.ErrAborted}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := tenLists(true)
			sendAll(&l)
			first := abi.Ack{State: abi.StateMoving, Lists: 1, Processed: listBytes}
			_, err := l.record(abi.TypeAck, &first)
			require.NoError(t, err)
			_, err = l.record(c.typ, &c.ack)
			require.ErrorIs(t, err, bridge.ErrFault)
		})
	}
	t.Run("done with bytes missing", func(t *testing.T) {
		l := newLedger(split{0x1000, 100}, 4, false)
		sendAll(&l)
		_, err := l.record(abi.TypeDone, &abi.Ack{State: abi.StateDone, Processed: 99})
		require.ErrorIs(t, err, bridge.ErrFault)
		_, err = l.record(abi.TypeDone, &abi.Ack{State: abi.StateDone, Processed: 100, Outstanding: 1})
		require.ErrorIs(t, err, bridge.ErrFault)
		_, err = l.record(abi.TypeDone, &abi.Ack{State: abi.StateMoving, Processed: 100})
		require.ErrorIs(t, err, bridge.ErrFault)
	})
	t.Run("ack before any list", func(t *testing.T) {
		l := tenLists(true)
		_, err := l.record(abi.TypeAck, &abi.Ack{State: abi.StateMoving})
		require.ErrorIs(t, err, bridge.ErrFault)
	})
	t.Run("moving before ready", func(t *testing.T) {
		l := tenLists(false)
		sendAll(&l)
		_, err := l.record(abi.TypeAck, &abi.Ack{State: abi.StateMoving, Lists: 1, Processed: listBytes})
		require.ErrorIs(t, err, bridge.ErrFault)
	})
}

func TestLedgerIgnoresWhatCrossesAnAbort(t *testing.T) {
	l := newLedger(split{0x1000, 100}, 4, false)
	sendAll(&l)
	l.aborting = true
	_, ok := l.next()
	require.False(t, ok)
	v, err := l.record(abi.TypeDone, &abi.Ack{State: abi.StateDone, Processed: 100})
	require.NoError(t, err)
	require.Equal(t, verdictIgnore, v)
	v, err = l.record(abi.TypeAborted, &abi.Ack{State: abi.StateFailed, Status: abi.ErrAborted, Processed: 100})
	require.NoError(t, err)
	require.Equal(t, verdictAborted, v)
	v, err = l.record(abi.TypeError, &abi.Ack{State: abi.StateFailed, Status: abi.ErrDMA})
	require.NoError(t, err)
	require.Equal(t, verdictFailed, v)
}

// checkLedger feeds records to a ledger and holds it to its invariants,
// whatever they say.
func checkLedger(t require.TestingT, l *ledger, next func() (abi.Type, abi.Ack, bool)) {
	for {
		sendAll(l)
		typ, ack, ok := next()
		if !ok {
			return
		}
		v, err := l.record(typ, &ack)
		require.LessOrEqual(t, l.acked, l.sent)
		require.LessOrEqual(t, l.sent, l.lists)
		require.LessOrEqual(t, l.sent-l.acked, l.window)
		require.LessOrEqual(t, l.processed, l.cut.size)
		if v == verdictDone && err == nil {
			require.Equal(t, l.cut.size, l.processed)
			require.Equal(t, l.lists, l.sent)
		}
		if err != nil {
			require.ErrorIs(t, err, bridge.ErrFault)
			return
		}
	}
}

func TestLedgerProperties(t *testing.T) {
	types := []abi.Type{abi.TypeAck, abi.TypeAck, abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeAborted}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(0, 1<<18).Draw(t, "size")
		l := newLedger(split{rapid.Uint64Range(0, 8192).Draw(t, "addr"), size},
			rapid.IntRange(1, 16).Draw(t, "window"), rapid.Bool().Draw(t, "ready"))
		steps := rapid.IntRange(0, 30).Draw(t, "steps")
		checkLedger(t, &l, func() (abi.Type, abi.Ack, bool) {
			if steps--; steps < 0 {
				return 0, abi.Ack{}, false
			}
			return rapid.SampledFrom(types).Draw(t, "type"), abi.Ack{
				Lists:     rapid.Uint32Range(uint32(l.acked), uint32(l.sent)+1).Draw(t, "lists"),
				Processed: rapid.Uint64Range(l.processed, l.cut.upTo(l.sent)+1).Draw(t, "processed"),
				State:     abi.State(rapid.IntRange(0, int(abi.StateCount)).Draw(t, "state")),
				Status:    abi.Status(rapid.SampledFrom([]int{0, 0, 0, 3, 8, 21}).Draw(t, "status")),
			}, true
		})
	})
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte("\x04\x02\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, script []byte) {
		l := newLedger(split{0x1234, 40 * listBytes}, 8, true)
		checkLedger(t, &l, func() (abi.Type, abi.Ack, bool) {
			if len(script) < 16 {
				return 0, abi.Ack{}, false
			}
			a := abi.Ack{
				State:     abi.State(script[1] % 8),
				Status:    abi.Status(script[2] % 24),
				Lists:     uint32(script[3]),
				Processed: binary.LittleEndian.Uint64(script[4:12]) % (64 * listBytes),
			}
			typ := abi.Type(script[0] % 16)
			l.aborting = l.aborting || script[12] > 250
			script = script[16:]
			return typ, a, true
		})
	})
}
