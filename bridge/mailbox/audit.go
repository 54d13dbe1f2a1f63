package mailbox

import (
	"time"

	"github.com/nfcomms/nfcomms/internal/proto"
)

const (
	auditVisits = 4096 // channels that one look visits
	auditAsks   = 256  // … and calls that it asks back
)

// audit finds offers that the device lost, or whose answer got lost. An offer may wait for its
// target without an end, so its heartbeatTimeout proves nothing. But the heartbeat counts the
// offers that the device has parked. If more calls wait than that at most checks, the device does
// not know all of them. Then those that have waited longest are asked back. While the numbers agree
// nothing is sent.
//
// One goroutine at a time works on it: the watch's.
type audit struct {
	ep    *epoch
	every int // looks from one pass to the next
	looks int // since the last pass
	short int // looks at which the device had parked too few
	walks bool
	at    int // the next channel to visit
}

// init sets the looks, one each interval, so that passes are one stall apart.
func (a *audit) init(ep *epoch, interval time.Duration) {
	a.ep = ep
	a.every = int(max(1, (ep.stall+interval-1)/interval))
}

// look compares the numbers of one heartbeat, or continues with a pass.
func (a *audit) look(parked uint64) {
	if !a.walks {
		a.looks++
		if waiting := a.ep.offered.Load(); waiting > 0 && uint64(waiting) > parked {
			a.short++
		}
		if a.looks < a.every {
			return
		}
		a.walks = 2*a.short > a.looks
		a.looks, a.short, a.at = 0, 0, 0
	}
	if a.walks {
		a.walk()
	}
}

// walk visits some channels.
func (a *audit) walk() {
	for visits, asks := 0, 0; visits < auditVisits && asks < auditAsks; visits++ {
		c, next := a.ep.table.from(a.at)
		if c == nil {
			a.walks = false
			return
		}
		a.at = next
		if c.send.examine() {
			asks++
		}
	}
}

// examine notes the offer that waits in the half. One that the last passes have
// seen waiting already is asked back.
func (h *sender) examine() bool {
	w := h.word.Load()
	if !waits(w) {
		h.waited = 0
		return false
	}
	if h.waited != countOf(w) {
		h.waited, h.passes = countOf(w), 0
		return false
	}
	if h.passes++; h.passes < h.asked.passes() {
		return false
	}
	h.passes = 0
	h.mailbox.rx.Lock()
	defer h.mailbox.rx.Unlock()
	if now := h.word.Load(); countOf(now) != countOf(w) || !waits(now) {
		return false
	}
	if h.word.Or(askFlag)&parkedFlag != 0 {
		h.wakeUp()
	}
	return true
}

// waits reports whether a call sleeps until the device answers its offer, which was not asked back.
func waits(w uint64) bool {
	s := stateOf(w)
	return w&parkedFlag != 0 && standOf(w).Marks()&proto.MarkRecall == 0 &&
		(s == proto.StateOffered || s == proto.StateMoving || s == proto.StateGiven)
}
