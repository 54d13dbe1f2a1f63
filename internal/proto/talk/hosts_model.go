package talk

import (
	"fmt"
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// HostsModel is the device between two hosts that tables describe. Its engine moves what both hosts
// have brought lists or pages for, but no bytes.
type HostsModel struct {
	Table    *proto.ConnectionTable
	Ends     []proto.EndRow
	Used     map[int]bool // rows of the table that were followed; nil: nobody asks
	UsedEnds map[int]bool

	end   [2]hostsEnd
	calls []int          // ends that have news, the next one last
	late  [2][]wire.Slot // of each host
	timed []int          // ends whose h2d half has a deadline, the last one first

	// Of transfers that move, by the end that gives, or by the host.
	paired  [2]bool
	until   [2]int
	active  [2][]abi.Direction // the next one first
	failing [2]bool            // nothing reaches its pages
	slow    [2]bool            // nothing that reaches them is done
	again   []int              // ends that wait until nothing moves
}

// hostsEnd is an end of the channel.
type hostsEnd struct {
	state EndState
	half  [2]proto.ConnectionHalf
	news  proto.News
	put   []wire.Slot

	parked wire.Slot // what its host offers
	list   wire.Slot // list 0 beside it
	move   [2]hostsMove
	posted uint64    // bytes of the pages that lie at d2h
	size   uint64    // of what the other host offered
	taken  wire.Slot // … as the other end gave it
	status abi.Status
	extra  uint64 // of the other end's answer
}

// EndState is that of package proto.
type EndState = proto.EndState

var _ Hosts = (*HostsModel)(nil)

// OpenHosts begins a conversation.
func (m *HostsModel) OpenHosts(next [4]uint64) error {
	*m = HostsModel{Table: m.Table, Ends: m.Ends, Used: m.Used, UsedEnds: m.UsedEnds}
	for e := range m.end {
		for d := range m.end[e].half {
			m.end[e].half[d] = proto.ConnectionHalf{Direction: abi.Direction(d), Next: next[2*e+d]}
		}
	}
	return nil
}

// NextOf returns the next slot for a host.
func (m *HostsModel) NextOf(host int) (*wire.Slot, error) {
	e := &m.end[host]
	if len(e.put) == 0 {
		return nil, nil
	}
	s := e.put[0]
	e.put = e.put[1:]
	return &s, nil
}

// Event makes something happen.
func (m *HostsModel) Event(what string, host int) error {
	switch what {
	case "connect":
		m.whole(0, proto.EndConnects)
		m.whole(1, proto.EndConnects)
	case "accept": // its target is that of the end already
	case "refuse":
		m.whole(1, proto.EndRefuses)
	case "subscribe":
		if m.whole(host, proto.EndSubscribes) {
			m.call(host)
		}
	case "detach":
		m.slow = [2]bool{}
		m.run()
		m.leaves(host)
		m.whole(host, proto.EndHostDetaches)
		m.end[host].put = nil
	case "fail":
		m.failing[host] = true
	case "slow", "quick":
		m.slow[host] = what == "slow"
	case "time":
		for e := range m.until {
			m.until[e] *= late
		}
		m.run()
		for _, e := range slices.Clone(m.timed) {
			m.follow(e, abi.H2D, proto.Deadline, 0)
		}
	default:
		return fmt.Errorf("unknown event %q", what)
	}
	m.run()
	return nil
}

// whole takes a transition of an end as a whole, if there is one.
func (m *HostsModel) whole(e int, in proto.EndInput) bool {
	r, i := m.end[e].state.Step(m.Ends, in)
	if i < 0 {
		return false
	}
	if m.UsedEnds != nil {
		m.UsedEnds[i] = true
	}
	if r.Put == proto.PutOver {
		m.close(e, 1<<abi.H2D|1<<abi.D2H)
	}
	m.end[e].state = r.Next
	if r.Next == proto.EndNone {
		m.timed = without(m.timed, e)
	}
	m.notify(e, abi.H2D, r.Notify)
	return true
}

// without returns a list without an end.
func without(list []int, e int) []int {
	return slices.DeleteFunc(list, func(o int) bool { return o == e })
}

// call has an end handle its news.
func (m *HostsModel) call(e int) {
	if !slices.Contains(m.calls, e) {
		m.calls = append(m.calls, e)
	}
}

// notify gives the other end news of a half of this one.
func (m *HostsModel) notify(e int, d abi.Direction, news proto.News) {
	news &^= proto.NewsTakes | proto.NewsStops | proto.NewsTook
	if news&proto.NewsGiveUp != 0 {
		m.end[e].news |= proto.NewsGone
		m.call(e)
		return
	}
	if news&proto.NewsClosed != 0 && d == abi.H2D {
		news = news&^proto.NewsClosed | proto.NewsClosedD2H
	}
	to := 1 - e
	if news == 0 || m.end[e].state == proto.EndAlone && news&proto.NewsGone == 0 || m.end[to].state == proto.EndNone {
		return
	}
	m.end[to].news |= news
	if m.end[to].state != proto.EndAlone {
		m.call(to)
	}
}

// hear has ends handle their news until there are none. It reports whether there were any.
func (m *HostsModel) hear() (any bool) {
	for len(m.calls) > 0 {
		e := m.calls[len(m.calls)-1]
		m.calls = m.calls[:len(m.calls)-1]
		if !slices.Contains(m.again, e) {
			m.hearAll(e)
		}
		any = true
	}
	return any
}

// hearAll has an end handle its news, but for the last one while something moves.
func (m *HostsModel) hearAll(e int) {
	for m.end[e].state == proto.EndOpen && m.end[e].news != 0 {
		next := m.end[e].news & -m.end[e].news
		if next == proto.NewsGone && m.stops(e) {
			m.again = append(m.again, e)
			return
		}
		m.end[e].news &^= next
		m.hears(e, next)
	}
}

// hears has an end handle one of its news.
func (m *HostsModel) hears(e int, news proto.News) {
	switch news {
	case proto.NewsAnswered:
		m.answered(e)
	case proto.NewsOffered:
		m.offered(e)
	case proto.NewsWithdrawn:
		m.follow(e, abi.D2H, proto.OtherWithdraws, 0)
	case proto.NewsAsked:
		m.follow(e, abi.D2H, proto.OtherAsks, 0)
	case proto.NewsReady:
		m.follow(e, abi.H2D, proto.OtherReady, 0)
	case proto.NewsClosed:
		m.follow(e, abi.H2D, proto.OtherClosed, 0)
	case proto.NewsClosedD2H:
		m.follow(e, abi.D2H, proto.OtherClosed, 0)
	case proto.NewsGone:
		m.gone(e)
	}
}

// answered is the other host's answer.
func (m *HostsModel) answered(e int) {
	status := m.end[e].status
	switch status {
	case abi.OK:
		m.follow(e, abi.H2D, proto.OtherTook, 0)
	case abi.ErrWithdrawn:
		m.follow(e, abi.H2D, proto.OtherGaveBack, 0)
	case abi.ErrClosed, abi.ErrSize, abi.ErrKind:
		m.follow(e, abi.H2D, proto.OtherRefused, status)
	default:
		m.follow(e, abi.H2D, proto.OtherFailed, 0)
	}
}

// offered is what the other host offers.
func (m *HostsModel) offered(e int) {
	end, s := &m.end[e], m.end[1-e].parked
	end.taken = s
	in := proto.OtherMessage
	if wire.Header(s.Header).Type() != wire.TypeDirect {
		end.size = s.Begin().Size
		in = proto.OtherTransfer
		if k := end.half[abi.D2H].Marks; k&proto.EndPosted != 0 && k&proto.EndShut == 0 && end.posted == end.size {
			if in = proto.OtherFits; !m.isThere(e) {
				in = proto.OtherFitsLate
			}
		}
	}
	m.follow(e, abi.D2H, in, 0)
}

// gone has an end lose the other one: what is offered ends first.
func (m *HostsModel) gone(e int) {
	end, halves := &m.end[e], uint32(0)
	before := end.half
	for _, idle := range []bool{false, true} {
		for d := range before {
			if (before[d].State == proto.DeviceIdle) == idle {
				m.follow(e, abi.Direction(d), proto.OtherGone, 0)
			}
		}
	}
	for d := range before {
		if end.half[d].Marks&^before[d].Marks&proto.EndClosed != 0 {
			halves |= 1 << d
		}
	}
	if halves != 0 {
		m.close(e, halves)
	}
	m.whole(e, proto.EndOtherGone)
}

// follow takes a transition, if there is one. found is the status where the row names none.
func (m *HostsModel) follow(e int, d abi.Direction, in proto.DeviceInput, found abi.Status) bool {
	end := &m.end[e]
	r, i := m.Table.Step(end.half[d], in)
	if i < 0 {
		return false
	}
	if m.Used != nil {
		m.Used[i] = true
	}
	before := end.half[d]
	end.half[d] = before.From(r)
	if r.Status != abi.OK {
		found = r.Status
	}
	if r.Set&proto.EndEnding != 0 && before.Marks&proto.EndEnding == 0 {
		end.move[d].status = found
		end.move[d].batch.stop()
	}
	m.times(e, d, r)
	if r.Put == proto.PutGo {
		end.move[d].greets = true // when the island has its turn
	} else {
		m.puts(e, d, r, found)
	}
	m.across(e, d, r, found)
	if in == proto.OtherClosed && r.Put == proto.PutReady {
		m.close(e, 1<<d)
	}
	if r.Notify&proto.NewsAnswered != 0 && end.state != proto.EndAlone {
		m.end[1-e].status = found
	}
	m.notify(e, d, r.Notify)
	return true
}

// times keeps the list of deadlines.
func (m *HostsModel) times(e int, d abi.Direction, r proto.ConnectionRow) {
	parked := r.Next == proto.DeviceMessage || r.Next == proto.DeviceOffered
	begins := parked && (r.State == proto.DeviceIdle || r.Set&proto.EndAsked != 0)
	ends := !parked || r.Notify&proto.NewsGiveUp != 0
	if d == abi.H2D && (begins || ends) {
		m.timed = without(m.timed, e)
	}
	if d == abi.H2D && begins {
		m.timed = slices.Insert(m.timed, 0, e)
	}
}
