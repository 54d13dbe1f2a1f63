package group

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the rank, the size of the group, and the way in which the members exchange. All
// members of a group give the same, but for Rank, Targets, Sources and Handler.
type Options struct {
	// Rank is this member's, from 0 to Size-1; Size is the number of members.
	Rank, Size int
	// Algorithm is a name that Algorithms lists; "" is Auto.
	Algorithm string
	// Targets and Sources, if one of them is not nil, are the ranks that this
	// member may send to and receives from: others are never waited for. If
	// both are nil every member may send to each. The members compare their
	// lists when they join.
	Targets, Sources []int
	// EventSize, if it is not 0, is what the bytes of each package are a
	// multiple of.
	EventSize int
	// Timeout, if it is not 0, is how long a step may take: the latency that
	// its data may have at most. The context of a call bounds it as well.
	Timeout time.Duration
	// JoinTimeout is how long Join waits for the others; 0 means a minute.
	JoinTimeout time.Duration
	// Buffer is the fixed size of what the algorithms fixed-buffer and chunks
	// send at once; 0 means 1 KiB.
	Buffer int
	// ZeroCopy has members of a Mesh that exchange both ways by isend read packages where their
	// senders have them: nothing is copied. The packages that Exchange returns must not be written
	// to then, and those that it was given must stay as they are until the next Exchange,
	// Allgather, Barrier or Shrink has returned without an error. Everything else copies as it does
	// without.
	ZeroCopy bool
	// Delay is waited by the gathering algorithms between sizes and data.
	Delay Delay
	// Measure has every step measured; else of short ones one in sixteen is.
	Measure bool
	// Handler is called with each package as it arrives, inside of the step,
	// by the algorithms that process what they receive: those whose names end
	// in "-l", which need it. The package is valid until it returns.
	Handler func(Package)
}

// Delay stands for work between the two halves of a gathering step: a time for
// each byte gathered and each member.
type Delay struct {
	PerByte, PerMember time.Duration
	// Random draws uniformly from zero to twice that time, by Seed.
	Random bool
	Seed   uint64
}

const (
	defaultJoinTimeout = time.Minute
	defaultBuffer      = 1 << 10
	// maxSize bounds a group: ranks and tags are 16 bits on the wire.
	maxSize = 1 << 15
)

// Package is what one member has for another in one step: in what is sent, Rank
// is the target's, in what is received the source's.
type Package struct {
	Rank int
	Data []byte
}

// Group is a member's end of a group. One call at a time uses it, which every
// member makes in the same order; Close, Stats and the accessors may be called by
// any goroutine.
type Group struct {
	link    memberLink
	near    *meshLink // the same, if the others are in this process
	expects expecter  // the same, if it is one
	options Options
	// waker ends a wait when the context does whose calls it was made for.
	waker struct {
		done <-chan struct{}
		stop func() bool
	}

	call   sync.Mutex  // held during a call
	closed atomic.Bool // Close was called
	ctx    context.Context
	until  time.Time // the step's deadline; zero: none
	op     operation
	broken *Error // why no step can follow in this epoch

	epoch  uint32
	step   uint64 // of the call that runs, or is next
	typed  any    // of the type that Exchange was called with last
	where  atomic.Pointer[membership]
	member membership // the same, for the call that runs
	inbox  inbox
	later  []frame // of later steps
	held   []frame // whose data the caller looks at
	frame  frame   // what the link fills in
	back   frame   // what it gets back
	gone   []error // by link rank: the end of that member
	lost   int     // how many are lost
	fault  *Error  // the failure of this step that received frames report

	revoked *Error // a member has given this epoch up
	missed  []int  // in a join: the ranks that this member missed

	// Memory that calls return or use until the next one.
	arena  pool[byte]
	ints   pool[int]
	slices pool[[]byte]

	edges
	exchanger exchanger
	algorithm Algorithm
	exchange  exchange
	sends     sends
	acks      []int    // by rank: synchronous frames not yet answered
	lastAt    []uint64 // by rank: 1 + the number of exchanges with data of it, 0 while more may arrive
	flushing  bool
	stats     stats
}

// membership lists the members of the group: it changes with Shrink alone.
type membership struct {
	rank int   // this member's
	link []int // by rank: the rank on the link
	of   []int // by link rank: the rank, -1 if it is no member
}

func (m *membership) size() int { return len(m.link) }

// edges are the ranks that exchange with this member.
type edges struct {
	targets, sources []int
	silent           []int  // sources that are no targets
	isTarget         []bool // by rank
	isSource         []bool
	exchanges        uint64   // finished in this epoch
	credit           []uint64 // by rank: the exchanges that a target finished, where it is no source
	oneWay           bool     // there are such targets
	toPeers          []peer
	fromPeers        []peer
}

// Join makes this endpoint a member and waits for the others. An *Error names
// the members that did not join (ErrLate, ErrCanceled) or joined with other options
// (ErrDisagree). When the first member waits no longer, all that wait get ErrLate,
// about the ranks that they missed and the first 16 that it missed.
func Join(ctx context.Context, t Transport, o Options) (*Group, error) {
	g := &Group{options: o}
	g.exchange.step.g = g
	g.stats.every = o.Measure
	fail := func(err error) (*Group, error) {
		return nil, &Error{Op: opHello.String(), Rank: o.Rank, Err: err}
	}
	if err := g.configure(); err != nil {
		return fail(err)
	}
	link, err := t.connect(o.Rank, o.Size)
	if err != nil {
		return fail(err)
	}
	g.link = link
	g.expects, _ = link.(expecter)
	g.meet()
	if err := g.hello(ctx); err != nil {
		_ = g.Close() // the reason is err
		return nil, err
	}
	return g, nil
}

// configure checks the options and sets up the member by them.
func (g *Group) configure() error {
	o := &g.options
	switch {
	case o.Size < 1 || o.Size > maxSize:
		return fmt.Errorf("%w: a group of %d members, not 1 to %d", ErrOptions, o.Size, maxSize)
	case o.Rank < 0 || o.Rank >= o.Size:
		return fmt.Errorf("%w: rank %d is not 0 to %d", ErrRank, o.Rank, o.Size-1)
	case o.EventSize < 0 || o.Timeout < 0 || o.JoinTimeout < 0 || o.Buffer < 0:
		return fmt.Errorf("%w: a negative size or time", ErrOptions)
	}
	if o.JoinTimeout == 0 {
		o.JoinTimeout = defaultJoinTimeout
	}
	if o.Buffer == 0 {
		o.Buffer = defaultBuffer
	}
	if o.Algorithm == "" {
		o.Algorithm = Auto
	}
	var err error
	if g.algorithm, err = find(o.Algorithm); err != nil {
		return err
	}
	if g.algorithm.Process != (o.Handler != nil) {
		return fmt.Errorf("%w: algorithm %s and Options.Handler: one comes with the other", ErrOptions, o.Algorithm)
	}
	all := make([]int, o.Size)
	for i := range all {
		all[i] = i
	}
	g.stats.chose(o.Algorithm, "by Options.Algorithm")
	g.admit(membership{o.Rank, all, slices.Clone(all)})
	g.gone = make([]error, o.Size)
	return g.connectEdges(o.Targets, o.Sources)
}

// admit makes m the group. State that depends on its size starts anew.
func (g *Group) admit(m membership) {
	n := m.size()
	g.member = m
	g.where.Store(&m)
	g.inbox.reset(n)
	g.sends.reset(n)
	g.acks, g.lastAt = make([]int, n), make([]uint64, n)
	g.exchange.reset(n)
	g.exchanger = g.algorithm.start()
}

// connectEdges sets who exchanges with this member; nil for both is everybody.
func (g *Group) connectEdges(targets, sources []int) error {
	n := g.member.size()
	g.edges = edges{isTarget: make([]bool, n), isSource: make([]bool, n), credit: make([]uint64, n)}
	if targets == nil && sources == nil {
		for i := range n {
			if i != g.member.rank {
				targets = append(targets, i)
			}
		}
		sources = targets
	}
	for _, list := range []struct {
		ranks []int
		is    []bool
	}{{targets, g.isTarget}, {sources, g.isSource}} {
		for _, r := range list.ranks {
			if r < 0 || r >= n || r == g.member.rank || list.is[r] {
				return fmt.Errorf("%w: %d among targets or sources: outside of the group, this member, or twice", ErrRank, r)
			}
			list.is[r] = true
		}
	}
	g.targets, g.sources = slices.Clone(targets), slices.Clone(sources)
	for _, from := range sources {
		if !g.isTarget[from] {
			g.silent = append(g.silent, from)
		}
	}
	return nil
}

// Rank is this member's rank, Size the number of members; both change with
// Shrink.
func (g *Group) Rank() int { return g.where.Load().rank }

// Size is the number of members.
func (g *Group) Size() int { return g.where.Load().size() }

// Members returns, by rank, the ranks that the members joined with.
func (g *Group) Members() []int { return slices.Clone(g.where.Load().link) }

// Close leaves the group and ends a call that runs, with ErrClosed. Members that
// wait for this one get ErrGone. It is idempotent.
func (g *Group) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	g.link.Wake()
	g.call.Lock()
	defer g.call.Unlock()
	g.ctx = nil
	if g.waker.stop != nil {
		g.waker.stop()
	}
	if err := g.link.Close(); err != nil {
		return &Error{Op: "close", Rank: g.member.rank, Step: g.step, Err: err}
	}
	return nil
}
