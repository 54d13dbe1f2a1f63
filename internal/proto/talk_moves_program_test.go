//go:build cgo

package proto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

func init() {
	movers = append(movers, party[talk.Moves]{"firmware", func(t *testing.T) talk.Moves { return firmware(t) }})
}

// TestWalkMoves: whatever hosts do with an end that moves, the rows and the firmware do the same.
func TestWalkMoves(t *testing.T) {
	moves, err := proto.NewMoves(proto.MoveRows())
	require.NoError(t, err)
	w := talk.NewMovesWalk(moves, firmware(t), *walkSeed)
	for i := range *walkSteps / 1000 { // each conversation boots a device
		require.NoError(t, w.Step(), "step %d (-walk.seed %d)", i, *walkSeed)
	}
}

// TestSeededChangesOfMoves: firmware with a defect in one transition fails a conversation.
func TestSeededChangesOfMoves(t *testing.T) {
	requireFound(t, moveTalks(t), talk.PlayMoves, []defect{
		{"an offer stays behind", "core/move.c", "atomic_fetch_or(&end->events, events);", "(void)events;"},
		{"a question stays behind", "core/move.c", "end->ready_due ? NFC_RELAY_ASKED : 0", "0"},
		{"a ticket is good for any channel", "core/move.c", "end->through == m->through &&", ""},
		{"the sender is told that the end is still there", "core/move.c", "ch->moved = 1;", ""},
	})
}
