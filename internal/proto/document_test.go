package proto_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

var update = flag.Bool("update", false, "write the state tables of docs/protocol.md")

const document = "../../docs/protocol.md"

// Names of things in the document.
var (
	inputText = map[proto.Input]string{
		proto.TakeOffer:            "DIRECT or IND_BEGIN under the next id",
		proto.TakeWithdraw:         "WITHDRAW",
		proto.TakeWithdrawn:        "WITHDRAWN",
		proto.TakeReady:            "READY for the next id",
		proto.TakeAsk:              "OFFER of the next id",
		proto.TakeMatch:            "IND_BEGIN under the next id, of the size that was posted",
		proto.TakeRecord:           "ACK, DONE, ERROR or ABORTED",
		proto.TakeConsumed:         "ACK(CONSUMED)",
		proto.TakeRefused:          "ERROR",
		proto.TakeNonsense:         "a record that cannot follow from what was put",
		proto.TakeProgress:         "ACK(READY, MOVING or REPEAT)",
		proto.TakeRetriesExhausted: "ACK(REPEAT) of one list, once too often",
		proto.TakeCrossed:          "ACK or DONE that crossed the ABORT",
		proto.TakeDone:             "DONE, and the ledger agrees",
		proto.TakeFailed:           "ERROR",
		proto.TakeAborted:          "ABORTED after ABORT",
		proto.TakeAnswer:           "ANSWER",
		proto.TakeUnanswered:       "ACK(CONSUMED) with a status",
		proto.PutMessage:           "*puts DIRECT*",
		proto.PutCall:              "*puts CALL*",
		proto.PutTransfer:          "*puts IND_BEGIN*, and IND_LIST 0",
		proto.PutEager:             "*puts EAGER*",
		proto.PutWithdraw:          "*puts WITHDRAW*: the call ends, or the audit asks",
		proto.PutWithdrawn:         "*puts WITHDRAWN*",
		proto.PutAccept:            "*puts ACK(CONSUMED)*, or FIN for 0 bytes",
		proto.PutRefuse:            "*puts ERROR(EABORTED)* for 0 bytes",
		proto.PutAbort:             "*puts ABORT*: the call ends, or nothing moves",
		proto.PutFin:               "*puts FIN*: the commit",
		proto.PutClose:             "*puts CLOSE*",
		proto.Hold:                 "*a call looks at it*",
		proto.Release:              "*the call leaves it there*: another kind or size, or too long",
		proto.Shut:                 "*will put CLOSE*",
	}
	eventText = map[proto.Event]string{
		proto.EventNone:             "",
		proto.EventStale:            "dropped and counted",
		proto.EventFault:            "fault",
		proto.EventDelivered:        "delivered: nil",
		proto.EventRefused:          "refused: its sentinel",
		proto.EventWithdrawn:        "withdrawn: `ErrWithdrawn` or `ErrClosed`; put again if the audit asked",
		proto.EventReady:            "ready: wakes the waiter, whose `TrySend` or `TrySendInd` is next",
		proto.EventOffer:            "offer: wakes a receiver",
		proto.EventRecalled:         "recalled: WITHDRAWN is to be put",
		proto.EventProgress:         "progress: lists up to the window; a record, where they met",
		proto.EventRetriesExhausted: "retries-exhausted: ABORT is to be put; then `ErrDMA`",
		proto.EventDone:             "done: FIN is to be put; nil",
		proto.EventFailed:           "failed: its sentinel, in a `*TransferError`",
		proto.EventAsked:            "asked: READY when a call waits to receive, or a waiter",
		proto.EventAnswered:         "answered: nil",
		proto.EventUnanswered:       "unanswered: `ErrUnanswered`",
		proto.EventAborted:          "aborted: why the call ended; the buffer is quiet",
	}
	markText = map[abi.Direction][]string{
		abi.H2D: {"recalled", "", "", "accepted"},
		abi.D2H: {"recalled", "held", "closed", ""},
	}
)

// standText describes a state with its marks.
func standText(d abi.Direction, s proto.State, with, without proto.Marks) string {
	text := s.String()
	for i, name := range markText[d] {
		switch {
		case with>>i&1 != 0:
			text += ", " + name
		case without>>i&1 != 0:
			text += ", not " + name
		}
	}
	return text
}

// stateTable renders the transitions of one half.
func stateTable(t *testing.T, d abi.Direction) string {
	var p page
	for s := proto.StateIdle; s <= proto.StateCalled; s++ {
		for _, r := range proto.Rows() {
			if r.Direction != d || r.State != s {
				continue
			}
			in, ok := inputText[r.Input]
			if d == abi.D2H && r.Input == proto.PutTransfer {
				in = "*puts IND_LIST 0*"
			}
			event, ok2 := eventText[r.Event]
			require.True(t, ok && ok2, "no words for %v", r)
			next := "fault"
			if r.Event != proto.EventFault {
				next = standText(d, r.Next, (r.With|r.Set)&^r.Clear&^gone(r.Next), 0)
			}
			p.add(standText(d, r.State, r.With, r.Without), in, event, next)
		}
	}
	return p.table("what comes, or what the host *does*", "what it means")
}

// gone are the marks that a state does not have.
func gone(s proto.State) proto.Marks {
	if s == proto.StateIdle {
		return proto.MarkRecall | proto.MarkHeld | proto.MarkAccepted
	}
	return 0
}

// TestDocumentHasTheTable compares the state tables of docs/protocol.md with the table.
func TestDocumentHasTheTable(t *testing.T) {
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	text := string(data)
	for _, section := range []struct{ title, want string }{
		{"The host's h2d half", stateTable(t, abi.H2D)},
		{"The host's d2h half", stateTable(t, abi.D2H)},
		{"The device's h2d half", deviceTable(t, abi.H2D)},
		{"The device's d2h half", deviceTable(t, abi.D2H)},
		{"The end's h2d half", connectionDocument(t, abi.H2D)},
		{"The end's d2h half", connectionDocument(t, abi.D2H)},
		{"The end as a whole", endDocument(t)},
		{"A channel whose end moves", moveDocument(t)},
		{"A process that connects", dialDocument(t, proto.DialCaller, false, true)},
		{"A port that is connected to", dialDocument(t, proto.DialTarget, false, false)},
		{"A host that is connected to", dialDocument(t, proto.DialTarget, true, false)},
	} {
		title, want := "### "+section.title+"\n\n", section.want
		head, rest, ok := strings.Cut(text, title)
		require.True(t, ok, "no section %q", title)
		end := strings.Index(rest, "\n\n") + 1
		if *update {
			text = head + title + want + rest[end:]
			continue
		}
		require.Equal(t, want, rest[:end], "go test ./internal/proto -run Document -update writes it")
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(text), 0o666))
	}
}
