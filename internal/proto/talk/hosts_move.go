package talk

import (
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

const (
	hostsWindow = 4        // lists in flight, of the other programs as well
	bounceBytes = 64 << 10 // that move at once, at most
	kickBytes   = 32 << 10 // of lists that move before the island's next turn, at most
	pieceBytes  = 16 << 10 // … of which so many move in a turn
	listBytes   = wire.ListEntries * abi.PageSize
)

// hostsMove is what an end knows of a transfer that moves.
type hostsMove struct {
	moving
	eager    bool // its host brought pages
	moved    uint64
	batch    batch
	ends     []uint64 // bytes up to the end of each list
	acked    int      // lists that its host knows to have moved …
	reported uint64   // … and bytes
	greets   bool     // READY is due
	took     bool     // h2d: the other host took it
}

// batch is what moves at once.
type batch struct {
	to           uint64 // bytes of the transfer that have moved with it; 0: none moves
	pieces, work uint64 // of it, and those that were begun
}

// stop lets no piece begin any more.
func (b *batch) stop() { b.pieces = b.work }

// next begins a piece. The batch is done when all have moved, which a slow host keeps them from.
func (b *batch) next(slow bool) (done, busy bool) {
	if b.work < b.pieces {
		b.work++
		return b.work == b.pieces && !slow, true
	}
	return !slow, !slow
}

// finished returns the lists that have moved.
func (t *hostsMove) finished() int {
	return len(t.ends) - len(slices.DeleteFunc(slices.Clone(t.ends), func(end uint64) bool { return end <= t.moved }))
}

// due reports whether to report progress to its host.
func (t *hostsMove) due() bool {
	half := hostsWindow / 2
	return t.moved < t.size && !t.eager && (t.finished()-t.acked >= half || t.moved-t.reported >= uint64(half*listBytes))
}

// isThere reports whether what is offered to an end still is.
func (m *HostsModel) isThere(e int) bool {
	from := &m.end[1-e]
	return m.end[e].state == proto.EndOpen && (from.state == proto.EndOpen || from.state == proto.EndBound) &&
		from.half[abi.H2D].State == proto.DeviceOffered
}

// begin has an end begin to move.
func (m *HostsModel) begin(e int, d abi.Direction, eager bool) *hostsMove {
	t := &m.end[e].move[d]
	*t = hostsMove{moving: moving{size: m.end[1-e].size}, eager: eager}
	if d == abi.D2H {
		t.size = m.end[e].size
	}
	if eager {
		t.pages()
	}
	m.active[e] = slices.Insert(m.active[e], 0, d)
	return t
}

// pages gives it all its pages.
func (t *hostsMove) pages() {
	t.received = t.size
	if t.size > 0 {
		t.lists, t.ends = 1, []uint64{t.size}
	}
}

// moves has an end take what the other one offers.
func (m *HostsModel) moves(e int) {
	from, marks := 1-e, m.end[1-e].half[abi.H2D].Marks
	in := proto.OtherMoves
	give := m.begin(from, abi.H2D, marks&proto.EndPages != 0)
	take := m.begin(e, abi.D2H, m.end[e].half[abi.D2H].Marks&proto.EndPages != 0)
	if take.eager {
		in = proto.OtherMovesPages
	}
	m.paired[from] = true
	m.follow(from, abi.H2D, in, 0)
	if marks&proto.EndListed != 0 {
		m.lists(from, abi.H2D, &m.end[from].list)
	}
	if take.eager && give.received < give.size {
		m.until[from] = waits
	}
	switch {
	case marks&proto.EndAborting != 0:
		m.follow(from, abi.H2D, proto.HearAbort, 0)
	case marks&proto.EndBroken != 0:
		m.follow(from, abi.H2D, proto.HearBadList, 0)
	case marks&proto.EndAsked != 0 && marks&proto.EndLate == 0:
		m.follow(from, abi.H2D, proto.HearWithdraw, 0)
	}
	m.kick(e, abi.D2H)
	m.kick(from, abi.H2D)
}

// lists takes a list of a transfer that moves.
func (m *HostsModel) lists(e int, d abi.Direction, s *wire.Slot) {
	t, g := &m.end[e].move[d], s.Gather()
	sum, ok := eager.checkList(&t.moving, s)
	if !ok || t.sum || g.Number() != uint16(t.lists) || g.Outstanding() != t.size-t.received-sum {
		m.follow(e, d, proto.HearBadList, 0)
		return
	}
	in := proto.HearList
	if t.lists == 0 && d == abi.H2D && sum < t.size {
		in = proto.HearFirstList
	}
	if !m.follow(e, d, in, 0) {
		return
	}
	t.lists++
	t.received += sum
	t.ends = append(t.ends, t.received)
}

// across notifies the other end at once of a transfer that moves.
func (m *HostsModel) across(e int, d abi.Direction, r proto.ConnectionRow, found abi.Status) {
	giver := e
	if d == abi.D2H {
		giver = 1 - e
	}
	if r.Notify&proto.NewsTakes != 0 {
		m.moves(e)
	}
	if !m.paired[giver] {
		return
	}
	if found != abi.ErrClosed {
		found = abi.ErrAborted
	}
	decided := d == abi.D2H && r.State == proto.DeviceCommit && r.Notify&proto.NewsStops != 0
	switch {
	case r.Notify&proto.NewsTook != 0:
		m.part(giver)
		m.end[giver].move[abi.H2D].took = true
	case r.Notify&proto.NewsGiveUp != 0:
		m.part(giver)
	case r.Notify&proto.NewsStops == 0:
	case d == abi.H2D && m.end[1-e].half[abi.D2H].State == proto.DeviceCommit: // that host decides
		if m.until[giver] == 0 {
			m.until[giver] = waits
		}
	default:
		m.follow(1-e, 1-d, proto.OtherStops, found)
	}
	if decided || r.Input == proto.HostGone {
		m.part(giver)
	}
}

// waits and late are states of a wait of an end for the other host.
const (
	waits = 1 + iota
	late
)

// part ends what two ends know of each other's transfer.
func (m *HostsModel) part(giver int) {
	m.paired[giver], m.until[giver] = false, 0
}

// isOver reports whether a half gives what is over but for the answer to its host, which says no more of it.
func (m *HostsModel) isOver(e int, d abi.Direction) bool {
	return d == abi.H2D && m.end[e].half[d].State == proto.DeviceMoving && !m.paired[e]
}

// kick moves a small transfer before the island's next turn.
func (m *HostsModel) kick(e int, d abi.Direction) {
	t := &m.end[e].move[d]
	most := uint64(kickBytes)
	if t.eager {
		most = wire.EagerBytes
	}
	if t.received < t.size || t.size > most || m.active[e][0] != d {
		return
	}
	if accounted, _ := m.advance(e, d); accounted && !m.ends(e, d) && !m.settle(e, d) {
		m.active[e] = m.active[e][1:]
	}
}

// ends reports whether a transfer is to end.
func (m *HostsModel) ends(e int, d abi.Direction) bool {
	return m.end[e].half[d].Marks&proto.EndEnding != 0
}

// advance moves what is to move, or reports it.
func (m *HostsModel) advance(e int, d abi.Direction) (accounted, busy bool) {
	if d == abi.H2D {
		return m.tells(e)
	}
	t, giver := &m.end[e].move[d], 1-e
	give, b := &m.end[giver].move[abi.H2D], &t.batch
	if n := min(t.received, give.received, t.moved+bounceBytes); b.to == 0 && m.paired[giver] && !m.ends(e, d) && n > t.moved {
		*b = batch{to: n, pieces: (n - t.moved + pieceBytes - 1) / pieceBytes}
		if b.pieces == 1 {
			b.work = 1
		}
	}
	if b.to > 0 {
		var done bool
		if done, busy = b.next(m.slow[giver] || m.slow[e]); !done {
			return false, busy
		}
	}
	if m.ends(e, d) && m.paired[giver] {
		m.part(giver)
	}
	m.batchDone(e)
	return true, busy
}

// batchDone accounts for a batch, unless the transfer ends.
func (m *HostsModel) batchDone(e int) {
	t, giver := &m.end[e].move[abi.D2H], 1-e
	to := t.batch.to
	t.batch = batch{}
	switch {
	case to == 0 || m.ends(e, abi.D2H):
	case m.failing[giver]:
		m.follow(giver, abi.H2D, proto.EngineFailed, 0)
	case m.failing[e]:
		m.follow(e, abi.D2H, proto.EngineFailed, 0)
	default:
		t.moved, m.end[giver].move[abi.H2D].moved = to, to
		m.progress(e, abi.D2H)
	}
}

// progress reports it to a host, if that is due.
func (m *HostsModel) progress(e int, d abi.Direction) {
	t := &m.end[e].move[d]
	if t.due() && m.follow(e, d, proto.EngineMoved, 0) {
		t.acked, t.reported = t.finished(), t.moved
	}
}

// tells reports to the giving host what moves.
func (m *HostsModel) tells(e int) (over, busy bool) {
	t := &m.end[e].move[abi.H2D]
	if m.paired[e] && m.until[e] == late {
		m.until[e], busy = 0, true
		if !m.ends(e, abi.H2D) || m.end[1-e].half[abi.D2H].State == proto.DeviceCommit {
			m.follow(e, abi.H2D, proto.Deadline, 0)
		}
	}
	if !m.paired[e] {
		return true, busy
	}
	if t.greets {
		t.greets, t.acked, t.reported = false, t.finished(), t.moved
		m.puts(e, abi.H2D, proto.ConnectionRow{State: proto.DeviceMoving, Put: proto.PutGo}, 0)
	} else {
		m.progress(e, abi.H2D)
	}
	return false, busy
}

// settle ends a transfer, or reports that it still moves.
func (m *HostsModel) settle(e int, d abi.Direction) bool {
	t := &m.end[e].move[d]
	switch {
	case t.took:
		m.follow(e, d, proto.OtherTook, 0)
	case m.ends(e, d):
		m.follow(e, d, proto.EngineQuiet, t.status)
		if d == abi.D2H {
			m.part(1 - e)
		}
	case t.moved < t.size || d == abi.H2D:
		return true
	default:
		m.follow(e, d, proto.EngineDone, 0)
		return false
	}
	m.over(e)
	return false
}

// over ends an end whose host closed both halves, once nothing moves.
func (m *HostsModel) over(e int) {
	end := &m.end[e]
	for _, h := range end.half {
		if h.Marks&proto.EndShut == 0 || h.State == proto.DeviceMoving {
			return
		}
	}
	m.whole(e, proto.EndOver)
}

// pump gives the transfers of a host a turn: one of them moves, a different one each time.
func (m *HostsModel) pump(e int) (busy bool) {
	i := 0
	for i < len(m.active[e]) && !busy {
		d := m.active[e][i]
		accounted, worked := m.advance(e, d)
		busy = worked
		if !accounted || m.settle(e, d) {
			i++
			continue
		}
		busy = true
		m.active[e] = slices.Delete(m.active[e], i, i+1)
	}
	m.active[e] = append(m.active[e][i:], m.active[e][:i]...)
	return busy
}

// run lets the device run until nothing is left to do.
func (m *HostsModel) run() {
	for range 100 {
		again := m.again
		m.again = nil
		for _, e := range again {
			m.hearAll(e)
		}
		busy := m.pump(1)
		busy = m.pump(0) || busy
		if !m.hear() && !busy && len(m.again) == 0 {
			return
		}
	}
}

// stops ends what moves at an end whose other end has closed, and reports whether something does.
func (m *HostsModel) stops(e int) (moves bool) {
	for d, h := range m.end[e].half {
		if h.State == proto.DeviceMoving {
			m.follow(e, abi.Direction(d), proto.OtherGone, 0)
			moves = true
		}
	}
	return moves
}

// leaves ends what moves at an end whose host detaches.
func (m *HostsModel) leaves(e int) {
	for d := range m.end[e].half {
		m.follow(e, abi.Direction(d), proto.HostGone, 0)
	}
	m.active[e] = nil
	m.run()
}
