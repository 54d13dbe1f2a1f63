package kdev

import (
	"context"
	"sync/atomic"
)

// Why a gate is shut.
const (
	shutHost   = 1 << iota // the half was closed here
	shutLost               // the channel's epoch is over
	shutDevice             // the device was closed
	gateBits   = 8
	gateMask   = 1<<gateBits - 1
)

// gate counts the calls inside, and lets no more in once it is shut.
type gate struct {
	state atomic.Int64 // calls inside << gateBits | why it is shut
	idle  chan struct{}
}

func newGate() gate { return gate{idle: make(chan struct{}, 1)} }

// enter lets a call in, unless the gate is shut: then it returns why.
func (g *gate) enter() (why int64) {
	if why = g.state.Add(1<<gateBits) & gateMask; why != 0 {
		g.leave()
	}
	return why
}

// leave ends what enter began.
func (g *gate) leave() {
	if s := g.state.Add(-1 << gateBits); s&gateMask != 0 && s>>gateBits == 0 {
		g.notify()
	}
}

// notify leaves the token that a waiter takes.
func (g *gate) notify() {
	select {
	case g.idle <- struct{}{}:
	default: // there is one
	}
}

// why returns the reasons for which the gate is shut, 0 while it is open.
func (g *gate) why() int64 { return g.state.Load() & gateMask }

// shut keeps new calls out.
func (g *gate) shut(why int64) { g.state.Or(why) }

// wait returns when no call is inside a gate that is shut, or with the
// context's error.
func (g *gate) wait(ctx context.Context) error {
	for g.state.Load()>>gateBits != 0 {
		select {
		case <-g.idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.notify() // for another waiter
	return nil
}
