package proto_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// TestTableIsUnambiguous: no two transitions fit one input.
func TestTableIsUnambiguous(t *testing.T) {
	rows := proto.Rows()
	_, err := proto.NewTable(rows)
	require.NoError(t, err)
	_, err = proto.NewTable(append(rows, rows[3]))
	require.ErrorContains(t, err, "two transitions: "+rows[3].String())
}

// TestSeededChanges: a table that differs in one transition fails a conversation.
func TestSeededChanges(t *testing.T) {
	type change struct {
		name      string
		direction abi.Direction
		state     proto.State
		input     proto.Input
		seed      func(r *proto.Row)
	}
	for _, c := range []change{
		{"a message that is delivered stays", abi.H2D, proto.StateOffered, proto.TakeConsumed, func(r *proto.Row) { r.Next = proto.StateOffered }},
		{"a refusal delivers", abi.H2D, proto.StateOffered, proto.TakeRefused, func(r *proto.Row) { r.Event = proto.EventDelivered }},
		{"nonsense is ignored", abi.H2D, proto.StateOffered, proto.TakeNonsense, func(r *proto.Row) { r.Event = proto.EventStale }},
		{"a withdrawal is not remembered", abi.H2D, proto.StateOffered, proto.PutWithdraw, func(r *proto.Row) { r.Set = 0 }},
		{"an error leaves the transfer moving", abi.H2D, proto.StateMoving, proto.TakeFailed, func(r *proto.Row) { r.Next = proto.StateMoving }},
		{"DONE ends the transfer without FIN", abi.H2D, proto.StateMoving, proto.TakeDone, func(r *proto.Row) { r.Next = proto.StateIdle }},
		{"a record crosses an abort as progress", abi.H2D, proto.StateMoving, proto.TakeCrossed, func(r *proto.Row) { r.Event = proto.EventProgress }},
		{"a held offer is recalled", abi.D2H, proto.StateOffered, proto.TakeWithdraw, func(r *proto.Row) { r.Event, r.Next = proto.EventRecalled, proto.StateAnswering }},
		{"a second offer replaces the first", abi.D2H, proto.StateOffered, proto.TakeOffer, func(r *proto.Row) { r.Event = proto.EventOffer }},
		{"an offer is let in after the close", abi.D2H, proto.StateIdle, proto.TakeOffer, func(r *proto.Row) { r.Event, r.Next = proto.EventOffer, proto.StateOffered }},
		{"an answer owed is forgotten", abi.D2H, proto.StateAnswering, proto.TakeOffer, func(r *proto.Row) { r.Event, r.Next = proto.EventOffer, proto.StateOffered }},
		{"an eager transfer waits for FIN", abi.H2D, proto.StateGiven, proto.TakeConsumed, func(r *proto.Row) { r.Next = proto.StateComplete }},
		{"an offer that crosses its pages is new", abi.D2H, proto.StatePosted, proto.TakeMatch, func(r *proto.Row) { r.Event, r.Next = proto.EventOffer, proto.StateOffered }},
		{"pages stay posted under another offer", abi.D2H, proto.StatePosted, proto.TakeOffer, func(r *proto.Row) { r.Next = proto.StatePosted }},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows := proto.Rows()
			seeded := 0
			for i := range rows {
				if r := &rows[i]; r.Direction == c.direction && r.State == c.state && r.Input == c.input {
					before := *r
					if c.seed(r); before != *r {
						seeded++
					}
				}
			}
			require.NotZero(t, seeded)
			table, err := proto.NewTable(rows)
			require.NoError(t, err)
			_, err = talk.Load(os.DirFS("testdata"), table)
			require.ErrorContains(t, err, "not by the table")
		})
	}
}
