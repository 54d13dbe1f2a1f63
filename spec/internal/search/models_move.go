package search

import "github.com/nfcomms/nfcomms/internal/proto"

// move changes the rows of a channel whose end moves, of a state and an input.
func move(s proto.MoveState, in proto.MoveInput, change func(*proto.MoveRow)) func(*proto.MoveRow) {
	return func(r *proto.MoveRow) {
		if r.State == s && r.Input == in {
			change(r)
		}
	}
}

func movesBroken() []Broken {
	return []Broken{
		{Name: "a ticket that does not wait for the answers before it", Defines: []string{"EARLY"}},
		{Name: "a sender that takes the acknowledgement for the commit", Defines: []string{"TRUST"}},
		{
			Name: "a device that denies a move",
			Move: move(proto.MoveMoved, proto.MoveVoid, func(r *proto.MoveRow) { r.Reply = proto.MoveKept }),
		},
		{
			Name: "a ticket that outlives its VOID",
			Move: move(proto.MoveTicketed, proto.MoveVoid, func(r *proto.MoveRow) { r.Next = proto.MoveTicketed }),
		},
		{
			Name: "an end that stays with its sender, too",
			Move: move(proto.MoveTicketed, proto.MoveClaim, func(r *proto.MoveRow) {
				if r.Sends == proto.MoveGives {
					r.Next = proto.MoveOpen
				}
			}),
		},
		{
			Name: "an offer that stays behind",
			Move: move(proto.MoveBound, proto.MoveOpens, func(r *proto.MoveRow) { r.Puts &^= proto.MovePutOffer }),
		},
		{
			Name: "a host that goes with an end that it has not opened, and the far host is not told",
			Move: move(proto.MoveBound, proto.MoveEnds, func(r *proto.MoveRow) { r.Sends = proto.MoveNothing }),
		},
	}
}
