package talk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

// GuestsModel is the device, or the devices, of a process that connects, as the rows of both ends describe.
type GuestsModel struct {
	Dial *proto.Dial
	Used map[int]bool // rows that were followed; nil: nobody asks

	kind   proto.DialKind
	state  [2]proto.DialState
	place  bool       // p has connected once, and keeps that place until it ends
	gone   bool       // no target listens, or has the port, any more
	left   bool       // … and the host is detached
	crowd  bool       // another process has connected: the port, or the listener, is busy with it
	word   bool       // the host has not answered the listener's message about this connection, or the last
	away   bool       // no packet arrives at the other node
	status abi.Status // of a refusal
	said   [2][]string
}

var _ Guests = (*GuestsModel)(nil)

// OpenGuests begins a conversation.
func (m *GuestsModel) OpenGuests(kind proto.DialKind) error {
	*m = GuestsModel{Dial: m.Dial, Used: m.Used, kind: kind}
	return nil
}

// host reports whether the target is a host.
func (m *GuestsModel) host() bool { return m.kind&proto.DialHost != 0 }

// Guest makes something happen.
func (m *GuestsModel) Guest(event string) (string, error) {
	const p, o = proto.DialCaller, proto.DialTarget
	m.said = [2][]string{}
	switch event {
	case "p connects":
		m.input(p, proto.DialConnects)
	case "p closes":
		m.input(p, proto.DialCloses)
	case "p ends":
		m.input(p, proto.DialEnds)
		m.place = false
	case "o closes":
		m.input(o, proto.DialCloses)
	case "o ends":
		m.input(o, proto.DialEnds)
		m.forget()
		m.left = true
	case "o takes":
		if s := m.state[o]; m.word && (s == proto.DialOffered || s == proto.DialOfferedLeft) {
			m.input(o, proto.DialTakes)
		}
		m.word = false
		m.offerNext()
	case "o stops":
		if m.host() {
			m.input(o, proto.DialStops)
		}
		m.forget()
	case "o opens":
		if !m.left {
			m.input(o, proto.DialOpens)
		}
	case "look":
		m.say(o, map[bool]string{false: "free", true: "kept"}[m.keeps()])
	default:
		if err := m.around(event); err != nil {
			return "", err
		}
	}
	return strings.Join(slices.Concat(m.said[p], m.said[o]), ", "), nil
}

// around makes something happen that is at neither end.
func (m *GuestsModel) around(event string) error {
	switch event {
	case "crowd":
		if m.crowd = true; m.host() {
			m.say(proto.DialTarget, "offer")
		}
	case "turn":
		m.leaves()
		m.offerNext()
	case "lose":
		if !m.host() {
			m.leaves()
		}
		m.away = true
		m.both(proto.DialNodeLost)
	case "found":
		if m.away = false; m.state[proto.DialCaller] == proto.DialAsking {
			m.asks()
		}
	case "late":
		m.both(proto.DialLate)
	default:
		return fmt.Errorf("unknown event %q", event)
	}
	return nil
}

func (m *GuestsModel) both(in proto.DialInput) {
	for _, e := range []proto.DialEnd{proto.DialCaller, proto.DialTarget} {
		m.input(e, in)
	}
}

// leaves is what the other process does that connected before.
func (m *GuestsModel) leaves() {
	if m.crowd && !m.host() {
		m.say(proto.DialTarget, abi.ErrClosed.String())
	}
	m.crowd = false
}

// forget is what a listener, or a port, does that ends.
func (m *GuestsModel) forget() { m.gone, m.crowd, m.word = true, false, false }

// offerNext has the listener offer the connection, if nothing else is offered.
func (m *GuestsModel) offerNext() {
	if m.host() && !m.crowd && !m.word && m.state[proto.DialTarget] == proto.DialWaiting {
		m.word = true
		m.input(proto.DialTarget, proto.DialNext)
	}
}

// asks is the caller's request at the target.
func (m *GuestsModel) asks() {
	switch {
	case m.kind&proto.DialFar != 0 && m.away:
		return
	case m.gone:
		m.status = abi.ErrNoTarget
	case m.crowd && !m.host():
		m.status = abi.ErrBusy
	default:
		m.input(proto.DialTarget, proto.DialAsked)
		m.offerNext()
		return
	}
	m.input(proto.DialTarget, proto.DialInVain)
}

// keeps reports whether anything is kept for a connection.
func (m *GuestsModel) keeps() bool {
	return m.place || m.crowd || m.state != [2]proto.DialState{}
}

// input has an end follow an input, and the other one what it sends.
func (m *GuestsModel) input(e proto.DialEnd, in proto.DialInput) {
	r, i := m.Dial.Step(e, m.kind, m.state[e], in)
	if i < 0 {
		return
	}
	if m.Used != nil {
		m.Used[i] = true
	}
	m.state[e] = r.Next
	m.place = m.place || e == proto.DialCaller && (r.Next == proto.DialWaiting || r.Next == proto.DialOpen)
	switch r.Does {
	case proto.DialReturns:
		m.say(e, text(r.Status))
	case proto.DialFails:
		m.say(e, text(m.status))
	case proto.DialOffers:
		m.say(e, "offer")
	case proto.DialOpensClosed:
		m.say(e, text(abi.OK))
		m.say(e, "CLOSE")
	case proto.DialClose:
		m.say(e, "CLOSE")
	}
	other := 1 - e
	switch r.Sends {
	case proto.DialAsks:
		m.asks()
	case proto.DialAdmits:
		m.input(other, proto.DialAdmitted)
	case proto.DialSubscribes:
		m.input(other, proto.DialOpened)
	case proto.DialRejects:
		m.input(other, proto.DialRefused)
	case proto.DialLeaves:
		m.input(other, proto.DialOtherGone)
	}
}

// text is the status of a call.
func text(s abi.Status) string {
	if s == abi.OK {
		return "0"
	}
	return s.String()
}

// say notes what an end's process or host observes.
func (m *GuestsModel) say(e proto.DialEnd, what string) {
	m.said[e] = append(m.said[e], "po"[e:e+1]+" "+what)
}
