package control

import "sync"

// callGroup is a call group: it counts goroutines and calls that are under way,
// and lets none in once it is closed.
type callGroup struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// spawn runs f beside the caller; false if the group is closed.
func (g *callGroup) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Go(f)
	}
	return !g.closed
}

// enter counts the caller until it calls running.Done; false if the group is
// closed.
func (g *callGroup) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

// close lets nobody in any more; false if it was closed.
func (g *callGroup) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.closed
	g.closed = true
	return !was
}
