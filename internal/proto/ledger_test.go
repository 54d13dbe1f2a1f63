package proto

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

const listBytes = wire.ListEntries * abi.PageSize

// sendAll takes every list the ledger allows.
func sendAll(l *Ledger) (n int) {
	for {
		if _, ok := l.Next(); !ok {
			return n
		}
		l.Sent++
		n++
	}
}

// tenLists is the account of ten full lists, window 4.
func tenLists(ready bool) Ledger {
	return NewLedger(Split{Address: 0x1000, Size: 10 * listBytes}, 4, ready)
}

func ackOf(state wire.State, lists uint32) wire.Ack {
	return wire.Ack{State: state, Lists: lists, Processed: uint64(lists) * listBytes, Outstanding: uint64(10-lists) * listBytes}
}

func TestLedgerWaitsForReadyAndWindow(t *testing.T) {
	l := tenLists(false)
	require.Equal(t, 1, sendAll(&l), "list 0 only")
	a := ackOf(wire.StateReady, 0)
	v, why := l.Record(wire.TypeAck, &a)
	require.Empty(t, why)
	require.Equal(t, TakeProgress, v)
	require.Equal(t, 3, sendAll(&l), "the window")
	a = ackOf(wire.StateMoving, 3)
	_, why = l.Record(wire.TypeAck, &a)
	require.Empty(t, why)
	require.Equal(t, 3, sendAll(&l))
	a = ackOf(wire.StateMoving, 7)
	_, why = l.Record(wire.TypeAck, &a)
	require.Empty(t, why)
	require.Equal(t, 3, sendAll(&l), "no more than there are")
	d := wire.Ack{State: wire.StateDone, Lists: 10, Processed: 10 * listBytes}
	v, why = l.Record(wire.TypeDone, &d)
	require.Empty(t, why)
	require.Equal(t, TakeDone, v)
}

// TestLedgerAccepted: any one of these shows that the target took the transfer, be it one byte.
func TestLedgerAccepted(t *testing.T) {
	require.False(t, new(Ledger).Accepted())
	for _, l := range []Ledger{{Ready: true}, {Acked: 1}, {Processed: 1}} {
		require.True(t, l.Accepted())
	}
}

// TestLedgerMovesWithoutReady: the device need not say READY to a transfer of one list. One byte or one
// list shows that it moves, and nothing else does.
func TestLedgerMovesWithoutReady(t *testing.T) {
	for _, c := range []struct {
		lists     uint32
		processed uint64
		want      Input
	}{{0, 0, TakeNonsense}, {0, 1, TakeProgress}, {1, 0, TakeProgress}} {
		l := NewLedger(Split{Address: 0x1000, Size: 8}, 4, false)
		require.Equal(t, 1, sendAll(&l))
		in, why := l.Record(wire.TypeAck, &wire.Ack{State: wire.StateMoving, Lists: c.lists, Processed: c.processed, Outstanding: 8 - c.processed})
		require.Equal(t, c.want, in, why)
	}
}

// TestLedgerUnknownState: a state beyond the last is named as such, not as one that does not fit.
func TestLedgerUnknownState(t *testing.T) {
	l := tenLists(true)
	in, why := l.Record(wire.TypeAck, &wire.Ack{State: wire.StateCount})
	require.Equal(t, TakeNonsense, in)
	require.Equal(t, "unknown status or state", why)
}

func TestLedgerRepeats(t *testing.T) {
	l := tenLists(true)
	require.Equal(t, 4, sendAll(&l))
	for i := range wire.RepeatsMax {
		a := wire.Ack{State: wire.StateRepeat, Lists: 2, Processed: 2 * listBytes, Status: abi.ErrBusy}
		v, why := l.Record(wire.TypeAck, &a)
		require.Empty(t, why)
		require.Equal(t, TakeProgress, v)
		k, ok := l.Next()
		require.True(t, ok)
		require.EqualValues(t, 2, k)
		require.Equal(t, 4, sendAll(&l), i)
	}
	a := wire.Ack{State: wire.StateRepeat, Lists: 2, Processed: 2 * listBytes}
	v, why := l.Record(wire.TypeAck, &a)
	require.Empty(t, why)
	require.Equal(t, TakeRetriesExhausted, v)
	require.EqualValues(t, 2+4+4, l.Repeated)
}

func TestLedgerWidensListNumbers(t *testing.T) {
	l := NewLedger(Split{Size: 1 << 47}, 8, true)
	l.Sent, l.Acked = 1<<32+2, 1<<32-2
	l.Processed = l.Cut.UpTo(l.Acked)
	a := wire.Ack{State: wire.StateMoving, Lists: 1, Processed: l.Cut.UpTo(1<<32 + 1)}
	_, why := l.Record(wire.TypeAck, &a)
	require.Empty(t, why)
	require.EqualValues(t, 1<<32+1, l.Acked)
}

func TestLedgerViolations(t *testing.T) {
	whole := uint64(10 * listBytes)
	for _, c := range []struct {
		name string
		typ  wire.Type
		ack  wire.Ack
	}{
		{"lists not sent", wire.TypeAck, wire.Ack{State: wire.StateMoving, Lists: 5}},
		{"lists going back", wire.TypeAck, wire.Ack{State: wire.StateMoving, Lists: 0}},
		{"bytes not sent", wire.TypeAck, wire.Ack{State: wire.StateMoving, Lists: 4, Processed: 5 * listBytes}},
		{"bytes going back", wire.TypeAck, wire.Ack{State: wire.StateMoving, Lists: 4, Processed: 1}},
		{"status on ack", wire.TypeAck, wire.Ack{State: wire.StateMoving, Lists: 4, Status: abi.ErrDMA}},
		{"ready twice", wire.TypeAck, wire.Ack{State: wire.StateReady, Lists: 1, Processed: listBytes}},
		{"ack consumed", wire.TypeAck, wire.Ack{State: wire.StateConsumed, Lists: 1, Processed: listBytes}},
		{"ack failed", wire.TypeAck, wire.Ack{State: wire.StateFailed, Lists: 1, Processed: listBytes}},
		{"unknown state", wire.TypeAck, wire.Ack{State: wire.StateCount}},
		{"unknown status", wire.TypeError, wire.Ack{State: wire.StateFailed, Status: abi.StatusCount}},
		{"repeat of the unsent", wire.TypeAck, wire.Ack{State: wire.StateRepeat, Lists: 4, Processed: listBytes}},
		{"repeat of the acked", wire.TypeAck, wire.Ack{State: wire.StateRepeat, Lists: 0, Processed: listBytes}},
		{"done too soon", wire.TypeDone, wire.Ack{State: wire.StateDone, Processed: whole}},
		{"error without status", wire.TypeError, wire.Ack{State: wire.StateFailed}},
		{"error with too many bytes", wire.TypeError, wire.Ack{State: wire.StateFailed, Status: abi.ErrDMA, Processed: whole + 1}},
		{"error with another state", wire.TypeError, wire.Ack{State: wire.StateDone, Status: abi.ErrDMA}},
		{"error in no entry", wire.TypeError, wire.Ack{State: wire.StateFailed, Status: abi.ErrDMA, FaultIndex: wire.ListEntries}},
		{"aborted unasked", wire.TypeAborted, wire.Ack{State: wire.StateFailed, Status: abi.ErrAborted}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := tenLists(true)
			sendAll(&l)
			first := wire.Ack{State: wire.StateMoving, Lists: 1, Processed: listBytes}
			_, why := l.Record(wire.TypeAck, &first)
			require.Empty(t, why)
			_, why = l.Record(c.typ, &c.ack)
			require.NotEmpty(t, why)
		})
	}
	t.Run("done with bytes missing", func(t *testing.T) {
		l := NewLedger(Split{Address: 0x1000, Size: 100}, 4, false)
		sendAll(&l)
		_, why := l.Record(wire.TypeDone, &wire.Ack{State: wire.StateDone, Processed: 99})
		require.NotEmpty(t, why)
		_, why = l.Record(wire.TypeDone, &wire.Ack{State: wire.StateDone, Processed: 100, Outstanding: 1})
		require.NotEmpty(t, why)
		_, why = l.Record(wire.TypeDone, &wire.Ack{State: wire.StateMoving, Processed: 100})
		require.NotEmpty(t, why)
	})
	t.Run("consumed with bytes missing", func(t *testing.T) {
		l := NewLedger(Split{Address: 0x1000, Size: 100}, 4, false)
		sendAll(&l)
		for _, a := range []wire.Ack{{Processed: 99}, {Processed: 100, Outstanding: 1}, {Processed: 100, Status: abi.ErrDMA}} {
			a.State = wire.StateConsumed
			_, why := l.Record(wire.TypeAck, &a)
			require.NotEmpty(t, why, "%+v", a)
		}
	})
	t.Run("consumed after an abort", func(t *testing.T) {
		l := NewLedger(Split{Address: 0x1000, Size: 100}, 4, false)
		sendAll(&l)
		l.Aborting = true
		in, why := l.Record(wire.TypeAck, &wire.Ack{State: wire.StateConsumed, Processed: 100})
		require.Empty(t, why)
		require.Equal(t, TakeConsumed, in)
	})
	t.Run("ack before any list", func(t *testing.T) {
		l := tenLists(true)
		_, why := l.Record(wire.TypeAck, &wire.Ack{State: wire.StateMoving})
		require.NotEmpty(t, why)
	})
	t.Run("moving before ready", func(t *testing.T) {
		l := tenLists(false)
		sendAll(&l)
		_, why := l.Record(wire.TypeAck, &wire.Ack{State: wire.StateMoving, Lists: 1, Processed: listBytes})
		require.NotEmpty(t, why)
	})
}

func TestLedgerIgnoresWhatCrossesAnAbort(t *testing.T) {
	l := NewLedger(Split{Address: 0x1000, Size: 100}, 4, false)
	sendAll(&l)
	l.Aborting = true
	_, ok := l.Next()
	require.False(t, ok)
	v, why := l.Record(wire.TypeDone, &wire.Ack{State: wire.StateDone, Processed: 100})
	require.Empty(t, why)
	require.Equal(t, TakeCrossed, v)
	v, why = l.Record(wire.TypeAborted, &wire.Ack{State: wire.StateFailed, Status: abi.ErrAborted, Processed: 100})
	require.Empty(t, why)
	require.Equal(t, TakeAborted, v)
	v, why = l.Record(wire.TypeError, &wire.Ack{State: wire.StateFailed, Status: abi.ErrDMA})
	require.Empty(t, why)
	require.Equal(t, TakeFailed, v)
}

// checkLedger feeds records to a ledger and holds it to its invariants,
// whatever they say.
func checkLedger(t require.TestingT, l *Ledger, next func() (wire.Type, wire.Ack, bool)) {
	for {
		sendAll(l)
		typ, ack, ok := next()
		if !ok {
			return
		}
		v, why := l.Record(typ, &ack)
		require.LessOrEqual(t, l.Acked, l.Sent)
		require.LessOrEqual(t, l.Sent, l.Lists)
		require.LessOrEqual(t, l.Sent-l.Acked, l.Window)
		require.LessOrEqual(t, l.Processed, l.Cut.Size)
		if v == TakeDone && why == "" {
			require.Equal(t, l.Cut.Size, l.Processed)
			require.Equal(t, l.Lists, l.Sent)
		}
		if why != "" {
			require.NotEmpty(t, why)
			return
		}
	}
}

func TestLedgerProperties(t *testing.T) {
	types := []wire.Type{wire.TypeAck, wire.TypeAck, wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(0, 1<<18).Draw(t, "size")
		l := NewLedger(Split{Address: rapid.Uint64Range(0, 8192).Draw(t, "addr"), Size: size},
			rapid.Uint64Range(1, 16).Draw(t, "window"), rapid.Bool().Draw(t, "ready"))
		steps := rapid.IntRange(0, 30).Draw(t, "steps")
		checkLedger(t, &l, func() (wire.Type, wire.Ack, bool) {
			if steps--; steps < 0 {
				return 0, wire.Ack{}, false
			}
			return rapid.SampledFrom(types).Draw(t, "type"), wire.Ack{
				Lists:     rapid.Uint32Range(uint32(l.Acked), uint32(l.Sent)+1).Draw(t, "lists"),
				Processed: rapid.Uint64Range(l.Processed, l.Cut.UpTo(l.Sent)+1).Draw(t, "processed"),
				State:     wire.State(rapid.IntRange(0, int(wire.StateCount)).Draw(t, "state")),
				Status:    abi.Status(rapid.SampledFrom([]int{0, 0, 0, 3, 8, 21}).Draw(t, "status")),
			}, true
		})
	})
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte("\x04\x02\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, script []byte) {
		l := NewLedger(Split{Address: 0x1234, Size: 40 * listBytes}, 8, true)
		checkLedger(t, &l, func() (wire.Type, wire.Ack, bool) {
			if len(script) < 16 {
				return 0, wire.Ack{}, false
			}
			a := wire.Ack{
				State:     wire.State(script[1] % 8),
				Status:    abi.Status(script[2] % 24),
				Lists:     uint32(script[3]),
				Processed: binary.LittleEndian.Uint64(script[4:12]) % (64 * listBytes),
			}
			typ := wire.Type(script[0] % 16)
			l.Aborting = l.Aborting || script[12] > 250
			script = script[16:]
			return typ, a, true
		})
	})
}
