package proto_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
)

// movers are the parties that play the device of an end that moves.
var movers = []party[talk.Moves]{
	{"proto", func(t *testing.T) talk.Moves { return movesModel(t, proto.MoveRows()) }},
}

func movesModel(t *testing.T, rows []proto.MoveRow) *talk.MovesModel {
	t.Helper()
	moves, err := proto.NewMoves(rows)
	require.NoError(t, err)
	return &talk.MovesModel{Moves: moves, Used: map[int]bool{}}
}

func moveTalks(t *testing.T) []*talk.GuestsTalk { return loadGuests(t, "testdata/moves/move.talk") }

// TestTalkMoves replays every conversation of an end that moves to every party.
func TestTalkMoves(t *testing.T) {
	replayGuests(t, moveTalks(t), movers, talk.PlayMoves)
}

// TestTalkCoversTheMoves requires that a conversation follows each transition.
func TestTalkCoversTheMoves(t *testing.T) {
	m := movesModel(t, proto.MoveRows())
	for _, c := range moveTalks(t) {
		require.NoError(t, talk.PlayMoves(c, m))
	}
	for i, r := range m.Moves.Rows() {
		if !m.Used[i] {
			t.Errorf("no conversation follows: %v", r)
		}
	}
}

// TestEachMoveRowMatters: a device that lacks a transition, or has another in its place, fails a conversation
// or leaves the walk that holds the firmware to the rows.
func TestEachMoveRowMatters(t *testing.T) {
	list := moveTalks(t)
	changes := map[string]func(r *proto.MoveRow){
		"state":      func(r *proto.MoveRow) { r.Next = (r.Next + 1) % (proto.MoveLeft + 1) },
		"reply":      func(r *proto.MoveRow) { r.Reply = (r.Reply + 1) % (proto.MoveGone + 1) },
		"messages":   func(r *proto.MoveRow) { r.Puts ^= proto.MovePutClose },
		"mark set":   func(r *proto.MoveRow) { r.Set = 0 },
		"mark unset": func(r *proto.MoveRow) { r.Clear = 0 },
		"marks":      func(r *proto.MoveRow) { r.With, r.Without = r.Without, r.With },
		"news":       func(r *proto.MoveRow) { r.Sends = (r.Sends + 1) % (proto.MoveReady + 1) },
	}
	by := map[string]int{}
	for i, r := range proto.MoveRows() {
		if !moveEqual("row", r) {
			by[movesMissed(t, list, slices.Delete(proto.MoveRows(), i, i+1), fmt.Sprintf("without: %v", r))]++
		}
		for what, change := range changes {
			rows := proto.MoveRows()
			if change(&rows[i]); rows[i] != r && !moveEqual(what, r) {
				by[movesMissed(t, list, rows, fmt.Sprintf("with another %s: %v", what, r))]++
			}
		}
	}
	reportFound(t, "ends that move", by)
}

// moveEqual reports whether a change makes no difference: only a request has a reply, nothing follows at a
// host that detached, and an end that was given once is not given further at once.
func moveEqual(what string, r proto.MoveRow) bool {
	left := r.Input == proto.MoveEnds && r.Sends == proto.MoveNothing && (what == "state" || what == "row")
	return what == "reply" && r.Reply == proto.MoveSilent || left || what == "news" && r.Input == proto.MoveGets
}

// movesMissed returns by what a device of these rows is found out.
func movesMissed(t *testing.T, list []*talk.GuestsTalk, rows []proto.MoveRow, change string) string {
	t.Helper()
	moves, err := proto.NewMoves(rows)
	if err != nil {
		return "by the table itself"
	}
	m := &talk.MovesModel{Moves: moves}
	right, err := proto.NewMoves(proto.MoveRows())
	require.NoError(t, err)
	w := talk.NewMovesWalk(right, m, 1)
	return foundOut(t, change, list, func(c *talk.GuestsTalk) error { return talk.PlayMoves(c, m) }, 20_000, w.Step)
}
