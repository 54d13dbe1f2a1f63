package search

import (
	"embed"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

//go:embed models/*.pml
var sources embed.FS

// Model is a file of models/ with its bounds.
type Model struct {
	Name    string
	File    string
	Defines []string // of the quick form
	Full    []string // further ones, of the whole search
	Broken  []Broken
	Long    bool // a compiler that optimizes takes longer than the search
	Whole   bool // "make spec" alone searches it
}

// Broken is a variant of a model that must be refuted.
type Broken struct {
	Name    string
	Defines []string
	Host    func(r *proto.Row)           // changes the host's rows
	Device  func(r *proto.DeviceRow)     // changes the device's rows
	End     func(r *proto.ConnectionRow) // changes those of the ends between hosts
	Dial    func(r *proto.DialRow)       // changes those of connections that processes open
	Move    func(r *proto.MoveRow)       // changes those of ends that move
}

// device changes the device's row of a half, a state and an input.
func device(d abi.Direction, s proto.DeviceState, in proto.DeviceInput, change func(*proto.DeviceRow)) func(*proto.DeviceRow) {
	return func(r *proto.DeviceRow) {
		if r.Direction == d && r.State == s && r.Input == in {
			change(r)
		}
	}
}

// host changes the host's rows of a half, a state and an input.
func host(d abi.Direction, s proto.State, in proto.Input, change func(*proto.Row)) func(*proto.Row) {
	return func(r *proto.Row) {
		if r.Direction == d && r.State == s && r.Input == in {
			change(r)
		}
	}
}

// end changes the rows of an end between hosts, of a half, a state and an input.
func end(d abi.Direction, s proto.DeviceState, in proto.DeviceInput, change func(*proto.ConnectionRow)) func(*proto.ConnectionRow) {
	return func(r *proto.ConnectionRow) {
		if r.Direction == d && r.State == s && r.Input == in {
			change(r)
		}
	}
}

// dial changes the rows of an end of a connection that a process opens, of a state and an input.
func dial(e proto.DialEnd, s proto.DialState, in proto.DialInput, change func(*proto.DialRow)) func(*proto.DialRow) {
	return func(r *proto.DialRow) {
		if r.End == e && r.State == s && r.Input == in {
			change(r)
		}
	}
}

// Models lists the models and their broken variants.
func Models() []Model {
	return []Model{
		{Name: "direct", File: "direct", Full: []string{"K=3", "SLOTS=3"}, Broken: directBroken()},
		{Name: "call", File: "call", Full: []string{"K=4", "SLOTS=3"}, Broken: callBroken()},
		{Name: "parking", File: "parking", Full: []string{"CHANNELS=5", "MANAGERS=3"}, Broken: parkingBroken()},
		{Name: "doorbell of a host that calls", File: "doorbell", Full: []string{"MESSAGES=4"}, Broken: doorbellBroken()},
		{
			Name: "doorbell of an island", File: "doorbell", Defines: []string{"CLEARS"}, Full: []string{"MESSAGES=4"},
			Broken: doorbellBroken(),
		},
		{Name: "news of an island", File: "news", Full: []string{"SWITCHES=3"}, Broken: newsBroken(), Whole: true},
		{Name: "indirect to the device", File: "indirect", Full: []string{"K=2", "LISTS=3", "REPEATS=2"}, Broken: indirectBroken(abi.H2D)},
		{
			Name: "indirect to the host", File: "indirect", Defines: []string{"D2H"}, Full: []string{"K=2", "LISTS=3", "REPEATS=2"},
			Broken: indirectBroken(abi.D2H),
		},
		{Name: "eager", File: "eager", Full: []string{"K=4", "SLOTS=3"}, Broken: eagerBroken()},
		{Name: "close", File: "close", Full: []string{"SUBSCRIPTIONS=3"}, Broken: closeBroken()},
		{Name: "link", File: "link", Full: []string{"PACKETS=4", "LOSSES=2", "ASKS=1"}, Broken: linkBroken()},
		{Name: "reset", File: "reset", Full: []string{"CALLS=4", "DEATHS=2", "RESETS=2"}, Broken: resetBroken()},
		{Name: "hosts", File: "hosts", Broken: hostsBroken(), Long: true},
		{
			Name: "transfers between hosts", File: "hosts", Defines: []string{"TRANSFERS"}, Full: []string{"TROUBLES=1"},
			Broken: transfersBroken(), Long: true,
		},
		{Name: "ring", File: "ring", Full: []string{"K=4"}, Broken: ringBroken(), Long: true},
		{Name: "moves", File: "move", Full: []string{"MOVES=2"}, Broken: movesBroken(), Long: true, Whole: true},
		{Name: "connections to a host", File: "dial", Full: []string{"CALLERS=2", "TIMES=2"}, Broken: guestsBroken(), Whole: true},
		{Name: "connections to a host of another node", File: "dial", Defines: []string{"FAR"}, Full: []string{"CALLERS=2"}, Broken: farGuestsBroken()},
		{Name: "connections to a port of another node", File: "dial", Defines: []string{"FAR", "PORT"}, Full: []string{"CALLERS=2"}, Broken: farPortsBroken(), Whole: true},
		{Name: "messages of processes", File: "joint", Full: []string{"TIMES=2"}, Broken: jointBroken()},
		{Name: "messages of processes at two nodes", File: "joint", Defines: []string{"FAR"}, Broken: farJointBroken(), Whole: true},
	}
}

func directBroken() []Broken {
	return []Broken{
		{Name: "a withdraw that does not wait for its answer", Defines: []string{"ONEWAY"}},
		{
			Name:   "a device that gives back and keeps",
			Device: device(abi.H2D, proto.DeviceMessage, proto.HearWithdraw, func(r *proto.DeviceRow) { r.Next = proto.DeviceMessage }),
		},
		{
			Name: "a host that forgets that it asked back",
			Host: host(abi.H2D, proto.StateOffered, proto.PutWithdraw, func(r *proto.Row) { r.Set = 0 }),
		},
		{
			Name: "a host that gives back what a call holds",
			Host: host(abi.D2H, proto.StateOffered, proto.TakeWithdraw, func(r *proto.Row) { r.Next = proto.StateAnswering }),
		},
		{
			Name:   "a device that refuses what was taken",
			Device: device(abi.D2H, proto.DeviceMessage, proto.HearAccept, func(r *proto.DeviceRow) { r.Return = proto.Fails }),
		},
	}
}

func callBroken() []Broken {
	return []Broken{
		{Name: "a withdraw that does not wait for its answer", Defines: []string{"ONEWAY"}},
		{
			Name:   "a device that gives a question up and keeps it",
			Device: device(abi.H2D, proto.DeviceTaken, proto.HearWithdraw, func(r *proto.DeviceRow) { r.Next = proto.DeviceTaken }),
		},
		{
			Name:   "a device that gives back what a process has",
			Device: device(abi.H2D, proto.DeviceTaken, proto.HearWithdraw, func(r *proto.DeviceRow) { r.Put = proto.PutBack }),
		},
		{
			Name:   "a read that leaves a question behind",
			Device: device(abi.H2D, proto.DeviceTaken, proto.Read, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }),
		},
		{
			Name: "a host that takes an acknowledgement for the answer",
			Host: host(abi.H2D, proto.StateCalled, proto.TakeUnanswered, func(r *proto.Row) { r.Event = proto.EventAnswered }),
		},
	}
}

func parkingBroken() []Broken {
	return []Broken{
		{Name: "managers that wait for their targets, 2 for 3 channels", Defines: []string{"BLOCKING"}},
		{Name: "managers that wait for their targets, 1 for 2 channels", Defines: []string{"BLOCKING", "MANAGERS=1", "CHANNELS=2"}},
		{
			Name:   "a device that does not park",
			Device: device(abi.H2D, proto.DeviceIdle, proto.HearMessage, func(r *proto.DeviceRow) { r.Next = proto.DeviceIdle }),
		},
		{
			Name:   "a device that answers nothing",
			Device: device(abi.H2D, proto.DeviceMessage, proto.Take, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }),
		},
	}
}

func doorbellBroken() []Broken {
	return []Broken{
		{Name: "no fence behind the slot", Defines: []string{"NO_PUTTER_FENCE"}},
		{Name: "no fence behind the word", Defines: []string{"NO_SLEEPER_FENCE"}},
		{Name: "no second look", Defines: []string{"NO_SECOND_LOOK"}},
	}
}

func newsBroken() []Broken {
	return []Broken{
		{Name: "a bit that is set before the slot", Defines: []string{"BIT_FIRST"}},
		{Name: "no fence behind the slot", Defines: []string{"NO_PUTTER_FENCE", "SWITCHES=2"}},
		{Name: "no second look at what is not watched any more", Defines: []string{"NO_SECOND_LOOK", "SWITCHES=2"}},
		{Name: "a second look before it is not watched any more", Defines: []string{"LOOKS_TOO_SOON", "SWITCHES=2"}},
		{Name: "an island that forgets what it did not take", Defines: []string{"NO_GIVING_BACK"}},
	}
}

func indirectBroken(d abi.Direction) []Broken {
	return []Broken{
		{Name: "an abort that does not wait for its answer", Defines: []string{"LAZYABORT"}},
		{Name: "an answer before the engine is quiet", Defines: []string{"NAIVE"}},
		{
			Name:   "a FIN that the device does not wait for",
			Device: device(d, proto.DeviceMoving, proto.EngineDone, func(r *proto.DeviceRow) { r.Next, r.Return = proto.DeviceIdle, proto.Succeeds }),
		},
		{
			Name:   "an abort after DONE that commits",
			Device: device(d, proto.DeviceCommit, proto.HearAbort, func(r *proto.DeviceRow) { r.Return = proto.Succeeds }),
		},
		{
			Name:   "an abort that nothing answers",
			Device: device(d, proto.DeviceMoving, proto.EngineQuiet, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }),
		},
		{
			Name: "a host that takes DONE for the end",
			Host: host(d, proto.StateMoving, proto.TakeDone, func(r *proto.Row) { r.Next = proto.StateIdle }),
		},
	}
}

func eagerBroken() []Broken {
	return []Broken{
		{Name: "pages that are given up before the answer", Defines: []string{"LAZYWITHDRAW"}},
		{
			Name:   "pages that outlive an offer of another size",
			Device: device(abi.D2H, proto.DeviceIdle, proto.GiveTransfer, func(r *proto.DeviceRow) { r.Clear = 0 }),
		},
		{
			Name:   "pages that outlive a message",
			Device: device(abi.D2H, proto.DeviceIdle, proto.GiveMessage, func(r *proto.DeviceRow) { r.Clear = 0 }),
		},
		{
			Name: "a host that takes the crossing offer for a new one",
			Host: host(abi.D2H, proto.StatePosted, proto.TakeMatch, func(r *proto.Row) { r.Next, r.Event = proto.StateOffered, proto.EventOffer }),
		},
	}
}

func closeBroken() []Broken {
	return []Broken{
		{
			Name:   "a close that does not wake the writer",
			Device: device(abi.D2H, proto.DeviceMessage, proto.HearClose, func(r *proto.DeviceRow) { r.Return = proto.Stays }),
		},
		{
			Name:   "a process that closes without an answer to what lies there",
			Device: device(abi.H2D, proto.DeviceMessage, proto.CloseHalf, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }),
		},
		{
			Name:   "a half that stays open for the host",
			Device: device(abi.H2D, proto.DeviceIdle, proto.HearClose, func(r *proto.DeviceRow) { r.Set = 0 }),
		},
		{
			Name:   "a half that stays open for the process",
			Device: device(abi.D2H, proto.DeviceIdle, proto.HearClose, func(r *proto.DeviceRow) { r.Set = 0 }),
		},
	}
}

func linkBroken() []Broken {
	return []Broken{
		{Name: "a credit that is counted twice", Defines: []string{"DOUBLE"}},
		{Name: "credits that report what is new, and may be lost", Defines: []string{"INCREMENTS"}},
		{Name: "no question for the last packet", Defines: []string{"NO_ASK"}},
		{Name: "packets that are taken in any order", Defines: []string{"ANY_SEQUENCE"}},
		{Name: "packets that are sent again after a restart", Defines: []string{"KEEPS_UNACKED"}},
		{Name: "a sequence that outlives a restart", Defines: []string{"KEEPS_EXPECTED"}},
	}
}

func resetBroken() []Broken {
	return []Broken{
		{Name: "a record of another epoch that counts", Defines: []string{"NO_EPOCH"}},
		{Name: "pages that are given back without a fence", Defines: []string{"NO_FENCE"}},
		{Name: "a fence that does not wait for what moves", Defines: []string{"NO_DRAIN"}},
		{Name: "a state that is READY before the hello is there", Defines: []string{"EARLY_READY"}},
		{Name: "a host that does not watch the heartbeat", Defines: []string{"NO_BEAT"}},
	}
}

func hostsBroken() []Broken {
	return []Broken{
		{
			Name: "an offer that is given back before the other host said so",
			End: end(abi.H2D, proto.DeviceMessage, proto.HearWithdraw, func(r *proto.ConnectionRow) {
				r.Put, r.Next = proto.PutBack, proto.DeviceIdle
			}),
		},
		{
			Name: "a device that waits for an answer for ever",
			End:  end(abi.H2D, proto.DeviceMessage, proto.Deadline, func(r *proto.ConnectionRow) { r.Notify &^= proto.NewsGiveUp }),
		},
		{
			Name: "a close that does not answer what lies there",
			End:  end(abi.D2H, proto.DeviceMessage, proto.HearClose, func(r *proto.ConnectionRow) { r.Notify &^= proto.NewsAnswered }),
		},
		{Name: "an id that is the same at both hosts", Defines: []string{"ONE_ID"}},
		{Name: "a device that drops what a host wrote last", Defines: []string{"UNREAD"}},
		{
			Name: "a receiving host that gives back what a call holds",
			Host: host(abi.D2H, proto.StateOffered, proto.TakeWithdraw, func(r *proto.Row) { r.Next = proto.StateAnswering }),
		},
	}
}

func transfersBroken() []Broken {
	return []Broken{
		{Name: "a half that ends while its pages are read", Defines: []string{"NAIVE"}},
		{Name: "an abort that does not wait for the host that has all", Defines: []string{"HASTY_STOP"}},
		{
			Name: "a device that takes DONE for the end of both halves",
			End:  end(abi.D2H, proto.DeviceMoving, proto.EngineDone, func(r *proto.ConnectionRow) { r.Notify = proto.NewsTook }),
		},
		{
			Name: "an abort after DONE that the other half does not learn of",
			End:  end(abi.D2H, proto.DeviceCommit, proto.HearAbort, func(r *proto.ConnectionRow) { r.Notify = 0 }),
		},
		{
			Name: "a page that cannot be reached and ends one half alone", Defines: []string{"TROUBLES=1"},
			End: end(abi.D2H, proto.DeviceMoving, proto.EngineFailed, func(r *proto.ConnectionRow) { r.Notify = 0 }),
		},
		{
			Name: "a receiving host that takes DONE for the end",
			Host: host(abi.D2H, proto.StateMoving, proto.TakeDone, func(r *proto.Row) { r.Next = proto.StateIdle }),
		},
	}
}

func ringBroken() []Broken {
	return []Broken{
		{Name: "a close that does not wait for the call under way", Defines: []string{"EARLY_CLOSE"}},
		{Name: "a reader that starts although it was closed", Defines: []string{"LATE_START"}},
		{Name: "a role that is given up before the status says so", Defines: []string{"HANGS_UP_FIRST"}},
		{Name: "no second look", Defines: []string{"NO_SECOND_LOOK"}},
		{Name: "a packet that is given back while it is read", Defines: []string{"EARLY_RELEASE", "K=4"}},
		{Name: "a role that is given twice in a generation", Defines: []string{"NO_USED", "WRITERS=2", "K=1"}},
	}
}
