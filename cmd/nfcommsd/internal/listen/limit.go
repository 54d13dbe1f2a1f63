package listen

import (
	"container/list"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// Limits bounds what a listener takes. A connection is waiting until Settle says
// whose it is: what strangers can have, and what callers have, are two pools.
type Limits struct {
	// Open is the most settled connections. A caller may have as many of them as
	// are left free: one gets half, two get a third each, and there is always
	// one for a caller who has none.
	Open int
	// Reserved is how many more the privileged may have.
	Reserved int
	// Waiting is the most connections that wait. One more closes the oldest of
	// the source that has the most.
	Waiting int
	// Pace bounds what is taken per second.
	Pace Pace
	// OwnerOf returns the owner of a connection when it is accepted, or an Owner without
	// a name where only a handshake or a request shows it; nil: for none.
	OwnerOf func(syscall.Conn) (Owner, error)
	// Late: a connection waits until Settle also if OwnerOf named its owner.
	Late bool
	// Refused is called for each connection that is closed for a limit.
	Refused func(source string, why Reason)
}

// Pace is how many new connections are taken per second; a second's worth may
// arrive at once. A connection counts when its owner is known, or else when its
// client sends something: one that says nothing takes nothing from those that do.
// A connection beyond it is closed at once: its client may try again. A source
// is known once a connection of it settled, for knownTime.
type Pace struct {
	// Stranger is for each source that is not known, Strangers for all of them
	// together, and Known for each that is.
	Stranger, Strangers, Known int
	// Requests is for what Request counts, of each source.
	Requests int
}

// Owner is whose a connection is.
type Owner struct {
	// Name is what its connections are counted under.
	Name string
	// Privileged callers find a reserved place when all others are taken, and
	// are held to no pace.
	Privileged bool
}

// Reason names the limit that closed a connection.
type Reason string

// Reasons.
const (
	Full    Reason = "full"    // no place is free, or as many as the caller has
	TooFast Reason = "pace"    // more in a second than the source may have
	Evicted Reason = "evicted" // it waited, and another arrived
	Unknown Reason = "unknown" // its user is not known
)

// errNoOwner is why a connection is Unknown that has to have an owner at once.
var errNoOwner = errors.New("no owner")

// knownTime is how long a source is known after it settled.
const knownTime = time.Hour

// Limit returns a listener whose connections are *Conn and within the limits.
func Limit(l net.Listener, limits Limits) net.Listener {
	limited := &limited{Listener: l, door: newDoor(limits)}
	if sc, ok := l.(syscall.Conn); ok && l.Addr().Network() == "unix" && limits.OwnerOf != nil && !limits.Late {
		limited.takeRaw(sc)
	}
	return limited
}

type limited struct {
	net.Listener
	door *door
	raw  syscall.RawConn // of a UNIX socket, if an owner is known at once; else nil
}

// Accept waits for a connection that is within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		if c := l.fromBacklog(); c != nil {
			return c, nil
		}
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.door.admit(conn); c != nil {
			return c, nil
		}
	}
}

// Close closes the listener, and the connections that wait: nobody will serve
// them.
func (l *limited) Close() error {
	err := l.Listener.Close()
	l.door.mu.Lock()
	var left []*Conn
	for e := l.door.waiting.Front(); e != nil; e = e.Next() {
		left = append(left, e.Value.(*Conn))
	}
	l.door.mu.Unlock()
	for _, c := range left {
		_ = c.Close()
	}
	return err
}

// door is what the connections of a listener share.
type door struct {
	limits    Limits
	strangers *rate.Limiter

	mu       sync.Mutex
	settled  int            // connections with an ordinary place
	reserved int            // connections with a reserved one
	waiting  *list.List     // of *Conn, the oldest first
	holders  map[string]int // settled connections by caller, of ordinary places
	sources  map[string]*source
	sweepAt  int // number of sources at which those without a count are forgotten
}

// source is an origin of connections.
type source struct {
	waiting int
	known   time.Time // until when
	pace    *rate.Limiter
	quick   bool // pace is that of a known source
	request *rate.Limiter
}

// leastSweep is the number of sources that are kept without a look.
const leastSweep = 1024

func newDoor(l Limits) *door {
	return &door{
		limits: l, strangers: limiter(l.Pace.Strangers), waiting: list.New(),
		holders: make(map[string]int), sources: make(map[string]*source), sweepAt: leastSweep,
	}
}

// limiter allows a second's worth at once, and all if perSecond is 0.
func limiter(perSecond int) *rate.Limiter {
	if perSecond == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(perSecond), perSecond)
}

// admit makes a connection one of the door's, or closes it and returns nil.
func (d *door) admit(conn net.Conn) *Conn {
	c := &Conn{Conn: conn, door: d, from: sourceOf(conn.RemoteAddr())}
	sc, _ := conn.(syscall.Conn)
	if !d.enter(c, sc) {
		conn.Close()
		return nil
	}
	return c
}

// enter finds a place for a new connection, whose socket is sc. If there is none, it counts the refusal
// and returns false.
func (d *door) enter(c *Conn, sc syscall.Conn) bool {
	var owner Owner
	if d.limits.OwnerOf != nil {
		var err error
		if owner, err = d.limits.OwnerOf(sc); err == nil && owner.Name == "" && c.Conn == nil {
			err = errNoOwner
		}
		if err != nil {
			d.limits.Refused(err.Error(), Unknown)
			return false
		}
	}
	if c.named = owner.Name != ""; c.named {
		c.from = owner.Name
	}
	c.peer = Owner{Name: c.from, Privileged: owner.Privileged}
	d.mu.Lock()
	why, evicted := d.enterLocked(c)
	d.mu.Unlock()
	if evicted != nil {
		evicted.Conn.Close()
		d.limits.Refused(evicted.from, Evicted)
	}
	if why != "" {
		d.limits.Refused(c.from, why)
	}
	return why == ""
}

// enterLocked finds a place for a new connection. It returns why there is none,
// or the connection to close for it. Must hold mu.
func (d *door) enterLocked(c *Conn) (why Reason, evicted *Conn) {
	if c.named && !d.limits.Late {
		c.begun.Store(true)
		switch {
		case !d.inPaceLocked(c):
			return TooFast, nil
		case !d.settleLocked(c, c.peer):
			return Full, nil
		}
		return "", nil
	}
	if d.waiting.Len() >= d.limits.Waiting {
		evicted = d.evictLocked()
	}
	d.waitLocked(c)
	return "", evicted
}

// begin counts a connection whose client sent something. One beyond the pace is closed.
func (d *door) begin(c *Conn) bool {
	d.mu.Lock()
	ok := d.inPaceLocked(c)
	d.mu.Unlock()
	if !ok {
		_ = c.Close()
		d.limits.Refused(c.from, TooFast)
	}
	return ok
}

// inPaceLocked counts a new connection of a source. A connection beyond the pace of
// its source takes nothing from other strangers. Must hold mu.
func (d *door) inPaceLocked(c *Conn) bool {
	if c.peer.Privileged {
		return true
	}
	now := time.Now()
	s := d.sources[c.from]
	known := c.named || s != nil && now.Before(s.known)
	if s != nil && !s.paceOf(known, d.limits.Pace).AllowN(now, 1) {
		return false
	}
	if !known && !d.strangers.AllowN(now, 1) {
		return false
	}
	if s == nil { // so that those who are refused are not kept
		return d.sourceLocked(c.from).paceOf(known, d.limits.Pace).AllowN(now, 1)
	}
	return true
}

// paceOf returns the pace of a source, anew when it became known or is forgotten.
func (s *source) paceOf(known bool, p Pace) *rate.Limiter {
	if s.pace == nil || s.quick != known {
		s.quick, s.pace = known, limiter(p.Stranger)
		if known {
			s.pace = limiter(p.Known)
		}
	}
	return s.pace
}

// sourceLocked returns what is known of a source, and forgets those of whom
// nothing is. Must hold mu.
func (d *door) sourceLocked(from string) *source {
	if s := d.sources[from]; s != nil {
		return s
	}
	if len(d.sources) >= d.sweepAt {
		now := time.Now()
		for name, s := range d.sources {
			if s.waiting == 0 && now.After(s.known) && full(s.pace, now) && full(s.request, now) {
				delete(d.sources, name)
			}
		}
		d.sweepAt = max(leastSweep, 2*len(d.sources))
	}
	s := &source{}
	d.sources[from] = s
	return s
}

// full reports whether a pace has nothing to remember.
func full(pace *rate.Limiter, now time.Time) bool {
	return pace == nil || pace.TokensAt(now) >= float64(pace.Burst())
}

// waitLocked puts a connection among those that wait. Must hold mu.
func (d *door) waitLocked(c *Conn) {
	c.place = waiting
	c.queued = d.waiting.PushBack(c)
	d.sourceLocked(c.from).waiting++
}

// evictLocked takes out the oldest connection of the source that waits with the
// most, one that sent nothing if there is any, or one that never settled. Must hold mu.
func (d *door) evictLocked() (victim *Conn) {
	most := 0
	for e := d.waiting.Front(); e != nil; e = e.Next() {
		most = max(most, d.sources[e.Value.(*Conn).from].waiting)
	}
	for e := d.waiting.Front(); e != nil; e = e.Next() {
		c := e.Value.(*Conn)
		if d.sources[c.from].waiting == most && (victim == nil || c.rank() < victim.rank()) {
			victim = c
		}
	}
	if victim != nil {
		d.leaveLocked(victim)
	}
	return victim
}

// rank orders connections that wait by what their clients did. Must hold mu.
func (c *Conn) rank() int {
	switch {
	case c.proven:
		return 2
	case c.begun.Load():
		return 1
	default:
		return 0
	}
}

// settleLocked gives a connection a place of its owner's; false if there is
// none. Must hold mu.
func (d *door) settleLocked(c *Conn, owner Owner) bool {
	switch {
	case d.holders[owner.Name] < d.limits.Open-d.settled:
		d.leaveLocked(c)
		d.settled++
		d.holders[owner.Name]++
		c.place = ordinary
	case owner.Privileged && d.reserved < d.limits.Reserved:
		d.leaveLocked(c)
		d.reserved++
		c.place = reserved
	default:
		return false
	}
	c.owner, c.proven = owner, true
	if !c.named {
		d.sourceLocked(c.from).known = time.Now().Add(knownTime)
	}
	return true
}

// leaveLocked gives the place of a connection back. Must hold mu.
func (d *door) leaveLocked(c *Conn) {
	switch c.place {
	case waiting:
		d.waiting.Remove(c.queued)
		d.sources[c.from].waiting--
	case ordinary:
		d.settled--
		if d.holders[c.owner.Name]--; d.holders[c.owner.Name] == 0 {
			delete(d.holders, c.owner.Name)
		}
	case reserved:
		d.reserved--
	}
	c.place = nowhere
}
