package talk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/internal/proto"
)

// Hosts of a conversation of moves: s and r, between which the end moves, and f, which has the far end.
const (
	movesS = iota
	movesR
	movesF
)

// MovesModel is the device at which an end moves, as the rows describe.
type MovesModel struct {
	Moves *proto.Moves
	Used  map[int]bool // rows that were followed; nil: nobody asks

	state  [2]proto.MoveState
	marks  proto.MoveMarks // of the end
	owner  int             // the host that has the end, s or r; -1: the end is closed
	ticket [2][2]int       // the numbers that a host got last, and before
	issued int
	shut   bool // a is closed
	full   bool // r may have no further channel with f

	left   [3]bool // detached
	large  bool    // f offers, or offered last, a transfer
	asks   bool    // f asked whether the other host waits
	alone  bool    // f has no other end any more
	closed bool    // … nor its own
	sent   [2]int  // messages of f, and of its owner
	said   [3][]string
}

var _ Moves = (*MovesModel)(nil)

// OpenMoves begins a conversation.
func (m *MovesModel) OpenMoves() error {
	*m = MovesModel{Moves: m.Moves, Used: m.Used, sent: [2]int{0, 100}}
	m.state[movesS] = proto.MoveOpen
	return nil
}

// Move makes something happen.
func (m *MovesModel) Move(event string) (string, error) {
	m.said = [3][]string{}
	host, what, _ := strings.Cut(event, " ")
	known := true
	switch who := slices.Index([]string{"s", "r", "f"}, host); {
	case event == "look":
		return map[bool]string{false: "free", true: "kept"}[m.keeps()], nil
	case event == "a closes":
		m.shut = true
	case event == "full" || event == "room":
		m.full = event == "full" && !m.left[movesR] && !m.left[movesF]
	case who < 0:
		known = false
	case m.left[who]:
	case who == movesF:
		known = m.far(what)
	default:
		known = m.near(who, what)
	}
	if !known {
		return "", fmt.Errorf("unknown event %q", event)
	}
	return strings.Join(slices.Concat(m.said[movesF], m.said[movesS], m.said[movesR]), ", "), nil
}

// keeps reports whether anything is kept: a and b are, of two hosts that are attached.
func (m *MovesModel) keeps() bool {
	return m.owner >= 0 || m.full || !m.alone && !m.closed || !m.left[movesS] && !m.left[movesR]
}

// near has a host that the end moves between do something.
func (m *MovesModel) near(x int, what string) bool {
	request, how, _ := strings.Cut(what, " ")
	old := how == "old"
	switch request {
	case "tickets":
		m.tickets(x, how == "itself")
	case "claims":
		m.claims(x, how)
	case "voids":
		in := proto.MoveVoid
		if n := m.ticket[x]; old && n[0] != n[1] {
			in = proto.MoveVoidOther
		}
		m.request(x, in)
	case "opens":
		m.request(x, proto.MoveOpens)
	case "takes":
		if !m.large { // else it would send lists
			m.input(x, proto.MoveTakes)
		}
	default:
		in, ok := map[string]proto.MoveInput{
			"sends": proto.MoveSends, "gives back": proto.MoveGivesBack, "waits": proto.MoveWaits,
			"closes": proto.MoveCloses, "ends": proto.MoveEnds,
		}[what]
		if !ok {
			return false
		}
		m.input(x, in)
		if in == proto.MoveEnds {
			m.left[x], m.shut = true, true
			m.full = m.full && x != movesR
		}
	}
	return true
}

// tickets is TICKET.
func (m *MovesModel) tickets(x int, itself bool) {
	in := proto.MoveTicket
	if itself {
		in = proto.MoveTicketItself
	} else if m.shut {
		m.say(x, "ENOTARGET")
		return
	}
	if m.request(x, in).Reply == proto.MoveOK {
		m.issued++
		m.ticket[x] = [2]int{m.issued, m.ticket[x][0]}
	}
}

// claims is CLAIM of what the other host has a ticket for.
func (m *MovesModel) claims(x int, how string) {
	from := 1 - x
	if n := m.ticket[from]; how != "" && (how != "old" || n[0] != n[1]) || m.shut || n[0] == 0 {
		m.say(x, "ENOTARGET")
		return
	}
	in := proto.MoveClaim
	if m.full && x == movesR {
		in = proto.MoveClaimFull
	}
	r, i := m.Moves.Step(m.state[from], m.marks, in)
	if m.say(x, reply(r, i)); i < 0 {
		return
	}
	m.follow(from, r, i)
}

// request has a host follow its request, and say the reply.
func (m *MovesModel) request(x int, in proto.MoveInput) proto.MoveRow {
	r, i := m.Moves.Step(m.state[x], m.marks, in)
	m.say(x, reply(r, i))
	if i >= 0 {
		m.follow(x, r, i)
	}
	return r
}

// reply is that to a request which a row answers, or none.
func reply(r proto.MoveRow, i int) string {
	if i < 0 {
		return "ENOTARGET"
	}
	return r.Reply.String()
}

// input has a channel at a host follow an input; false: no row has it.
func (m *MovesModel) input(x int, in proto.MoveInput) bool {
	if x < 0 {
		return false
	}
	r, i := m.Moves.Step(m.state[x], m.marks, in)
	if i >= 0 {
		m.follow(x, r, i)
	}
	return i >= 0
}

func (m *MovesModel) follow(x int, r proto.MoveRow, i int) {
	if m.Used != nil {
		m.Used[i] = true
	}
	before := m.marks
	m.state[x] = r.Next
	m.marks = m.marks&^r.Clear | r.Set
	for p := proto.MovePutOffer; p <= proto.MovePutClose; p <<= 1 {
		if r.Puts&p == 0 {
			continue
		}
		text := p.String()
		if p == proto.MovePutOffer {
			if m.large {
				text = "transfer"
			}
			text += " " + strconv.Itoa(m.sent[0])
		}
		m.say(x, text)
	}
	m.sends(x, r, before)
	if m.owner == x && (r.Next == proto.MoveNone || r.Next == proto.MoveAlone) {
		m.owner, m.marks = -1, 0
	}
}

// sends is what the far end, or the next host, learns of a transition.
func (m *MovesModel) sends(x int, r proto.MoveRow, before proto.MoveMarks) {
	switch r.Sends {
	case proto.MoveGives:
		m.owner = -1
		if m.input(1-x, proto.MoveGets) {
			m.owner = 1 - x
		}
	case proto.MoveOffers:
		m.sent[1]++
		m.notify("offer " + strconv.Itoa(m.sent[1]))
	case proto.MoveTook:
		m.notify("taken")
	case proto.MoveBack:
		m.notify("back")
	case proto.MoveReady:
		m.ready()
	case proto.MoveLeaves:
		m.alone = true
		m.ready()
		if before&proto.MoveOffered != 0 {
			m.notify("ECLOSED")
		}
		if before&proto.MoveSending != 0 {
			m.notify("WITHDRAW")
		}
		m.notify("CLOSE")
	}
}

// far has the host at the far end do something.
func (m *MovesModel) far(what string) bool {
	switch what {
	case "sends", "begins":
		if m.idle() {
			m.sent[0]++
			m.large, m.asks = what == "begins", false
			m.input(m.owner, proto.MoveOtherOffers)
		}
	case "asks":
		if m.idle() {
			m.asks = true
			m.input(m.owner, proto.MoveOtherAsks)
		}
	case "withdraws":
		m.input(m.owner, proto.MoveOtherWithdraws)
	case "takes":
		m.input(m.owner, proto.MoveOtherTakes)
	case "shuts":
		m.asks = false
		m.input(m.owner, proto.MoveOtherShuts)
	case "closes":
		if !m.closed {
			m.notify("CLOSE")
		}
		m.goes()
	case "ends":
		m.goes()
		m.left[movesF], m.full = true, false
	default:
		return false
	}
	return true
}

// idle reports whether f may offer something.
func (m *MovesModel) idle() bool {
	return !m.alone && !m.closed && m.marks&(proto.MoveOffered|proto.MoveShut) == 0
}

// ready has f learn that the other host waits, or is gone, if f asked.
func (m *MovesModel) ready() {
	if m.asks {
		m.notify("ready")
	}
	m.asks = false
}

// goes releases the far end.
func (m *MovesModel) goes() {
	m.asks = false
	if !m.alone && !m.closed {
		m.input(m.owner, proto.MoveOtherGone)
	}
	m.closed = true
}

func (m *MovesModel) notify(what string) {
	if !m.left[movesF] {
		m.say(movesF, what)
	}
}

// say notes what a host observes.
func (m *MovesModel) say(x int, what string) {
	m.said[x] = append(m.said[x], "srf"[x:x+1]+" "+what)
}
