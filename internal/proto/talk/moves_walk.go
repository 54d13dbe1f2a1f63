package talk

import (
	"math/rand/v2"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// MovesWalk is a conversation of an end that moves which chance writes, played to the device of rows and to
// another one. The same seed gives the same walk.
type MovesWalk struct {
	Model MovesModel

	other Moves
	rand  *rand.Rand
	left  int // steps until the next conversation
	past  events
}

// NewMovesWalk begins a walk along rows, to compare another device with.
func NewMovesWalk(moves *proto.Moves, other Moves, seed uint64) *MovesWalk {
	return &MovesWalk{
		Model: MovesModel{Moves: moves, Used: map[int]bool{}},
		other: other, rand: rand.New(rand.NewPCG(seed, 4)),
	}
}

// Step makes the next step, and returns how the devices differ after it.
func (w *MovesWalk) Step() error {
	if w.left--; w.left > 0 {
		return w.both(w.event())
	}
	w.left, w.past = 60, nil
	if err := w.Model.OpenMoves(); err != nil {
		return err
	}
	return w.other.OpenMoves()
}

// event chooses one that hosts may cause which await the answer to what they offer before they close.
func (w *MovesWalk) event() string {
	m := &w.Model
	events := []string{"look"}
	add := func(when bool, all ...string) {
		if when {
			events = append(events, all...)
		}
	}
	rarely, seldom := w.rand.IntN(8) == 0, w.rand.IntN(40) == 0
	for x, host := range []string{"s ", "r "} {
		held := m.state[x] == proto.MoveOpen || m.state[x] == proto.MoveTicketed
		over := m.state[x] == proto.MoveAlone || m.state[x] == proto.MoveMoved
		add(held, host+"tickets", host+"tickets", host+"takes", host+"sends")
		add(held && m.marks&proto.MoveRecalled != 0, host+"gives back")
		add(held && m.marks&proto.MoveDue != 0, host+"waits")
		add(m.state[1-x] == proto.MoveTicketed && m.state[x] == proto.MoveNone, host+"claims", host+"claims", host+"claims")
		add(m.state[1-x] != proto.MoveTicketed, host+"claims")
		add(rarely, host+"tickets", host+"tickets itself", host+"claims old", host+"claims other", host+"claims own", host+"voids old")
		add(true, host+"voids", host+"takes")
		add(rarely || m.state[x] == proto.MoveBound || m.state[x] == proto.MoveLeft, host+"opens", host+"opens")
		add(over || rarely && held && m.marks&proto.MoveSending == 0, host+"closes")
		add(seldom, host+"ends")
	}
	offered := m.marks&proto.MoveOffered != 0
	add(!m.closed, "f sends", "f sends", "f begins", "f asks", "f takes")
	add(offered, "f withdraws")
	add(rarely && !offered && !m.alone && !m.closed, "f shuts")
	add(rarely && !offered, "f closes")
	add(seldom, "f ends", "a closes")
	add(rarely && m.owner != movesR, "full")
	add(m.full, "room")
	return events[w.rand.IntN(len(events))]
}

func (w *MovesWalk) both(event string) error { return w.past.both(event, w.Model.Move, w.other.Move) }
