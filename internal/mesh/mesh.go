package mesh

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// Shapes and counts, as the firmware has them.
type (
	// Config is the shape of a mesh; zero fields take defaults.
	Config = firmware.MeshConfig
	// Faults are chances of each word of a link.
	Faults = firmware.MeshFaults
	// State is what a node counted.
	State = firmware.MeshState
	// Link is one end of a link in a State.
	Link = firmware.MeshLink
)

// Links is how many links a node has.
const Links = firmware.MeshLinks

// All, as a destination, is each other node in its order.
const All = -1

// Errors of a mesh.
var (
	// ErrClosed means that the mesh was closed.
	ErrClosed = fmt.Errorf("mesh: %w", bridge.ErrClosed)
	// ErrUnknown means that there is no such node or link here.
	ErrUnknown = fmt.Errorf("no such node or link in this mesh: %w", bridge.ErrInvalid)
	// ErrBusy means that a node still sends what it was asked to before, or is dead.
	ErrBusy = fmt.Errorf("node is busy or dead: %w", bridge.ErrBusy)
)

// Mesh is running nodes, numbered x first. Its methods are safe for concurrent use.
type Mesh struct {
	config Config
	nodes  int

	mu     sync.RWMutex // Close against all others
	m      *firmware.Mesh
	closed chan struct{}
	pumps  sync.WaitGroup // and puts and gets

	pumping sync.Mutex // guards pumped, and Kill against itself
	pumped  map[[2]int]*pump

	testing sync.Mutex // guards tested; taken before mu
	tested  map[[2]int]bool

	windowing sync.Mutex // guards windows
	windows   map[*Window]bool
	wakes     *os.File      // readable when operations ended whose callers are parked
	woken     chan struct{} // closed when nobody reads it any more
	entering  []sync.Mutex  // of nodes: goroutines queue for a node here, as threads would in the firmware
	silent    time.Duration // after which a connection without words ends
	stepping  sync.Mutex    // one goroutine at a time lets time pass
}

// Open starts a mesh. The error wraps [bridge.ErrInvalid] for a shape that makes no
// sense.
func Open(c Config) (*Mesh, error) {
	if err := checkSides(c.Side); err != nil {
		return nil, err
	}
	f, status := firmware.NewMesh(c)
	if status != abi.OK {
		return nil, fmt.Errorf("start mesh of %dx%dx%d nodes: %w", c.Side[0], c.Side[1], c.Side[2], bridge.Error(status))
	}
	wakes, err := openEvent(f.Wakes())
	if err != nil {
		f.Close()
		return nil, err
	}
	nodes := c.Side[0] * c.Side[1] * c.Side[2]
	m := &Mesh{
		config: c, nodes: nodes, m: f, closed: make(chan struct{}),
		silent: max(silencesMost*c.Silence, silentLeast),
		pumped: map[[2]int]*pump{}, tested: map[[2]int]bool{}, windows: map[*Window]bool{},
		wakes: wakes, woken: make(chan struct{}), entering: make([]sync.Mutex, nodes),
	}
	go m.wakeParked(f)
	return m, nil
}

// checkSides refuses tori that no mesh has, with the limit.
func checkSides(side [3]int) error {
	nodes := 1
	for _, n := range side {
		if n < 1 || n > firmware.MeshSideMax {
			return fmt.Errorf("a torus of %v: %w: sides are 1..%d", shape(side), bridge.ErrInvalid, firmware.MeshSideMax)
		}
		nodes *= n
	}
	switch {
	case nodes < 2:
		return fmt.Errorf("a torus of %v: %w: one node is no fabric", shape(side), bridge.ErrInvalid)
	case nodes > firmware.MeshNodesMax:
		return fmt.Errorf("a torus of %v, %d nodes: %w: at most %d", shape(side), nodes, bridge.ErrInvalid, firmware.MeshNodesMax)
	}
	return nil
}

// Close ends all nodes, connections, puts and gets, and revokes all windows. It is
// idempotent.
func (m *Mesh) Close() {
	m.mu.Lock()
	select {
	case <-m.closed:
		m.mu.Unlock()
		return
	default:
	}
	close(m.closed)
	m.m.CloseOps()
	m.mu.Unlock()
	m.pumps.Wait()
	_ = m.wakes.Close() // nobody is parked any more
	<-m.woken
	m.mu.Lock()
	defer m.mu.Unlock()
	m.m.Close()
	m.m = nil
	m.forgetWindows()
}

// with runs fn unless the mesh is closed or there is no such node.
func (m *Mesh) with(node int, fn func(f *firmware.Mesh)) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.m == nil:
		return ErrClosed
	case !m.has(node):
		return fmt.Errorf("node %d: %w", node, ErrUnknown)
	}
	fn(m.m)
	return nil
}

func (m *Mesh) has(node int) bool { return node >= 0 && node < m.nodes }

func (m *Mesh) withLink(node, link int, fn func(f *firmware.Mesh)) error {
	if link < 0 || link >= Links || !m.has(node) || m.Neighbour(node, link) == node {
		return fmt.Errorf("link %d of node %d: %w", link, node, ErrUnknown)
	}
	return m.with(node, fn)
}

// Nodes returns how many nodes the torus has.
func (m *Mesh) Nodes() int { return m.nodes }

// here reports whether a node is of this process.
func (m *Mesh) here(node int) bool { return m.config.Here == nil || m.config.Here[node] }

// Neighbour returns the node at the other end of a link; both are of the torus.
func (m *Mesh) Neighbour(node, link int) int {
	stride := [3]int{1, m.config.Side[0], m.config.Side[0] * m.config.Side[1]}[link/2]
	side := m.config.Side[link/2]
	c := node / stride % side
	to := (c + 1) % side
	if link%2 == 1 {
		to = (c + side - 1) % side
	}
	return node + (to-c)*stride
}

// Step lets time pass in a mesh without threads.
func (m *Mesh) Step(d, step time.Duration) error {
	m.stepping.Lock()
	defer m.stepping.Unlock()
	return m.with(0, func(f *firmware.Mesh) { f.Step(d, step) })
}

// Cut cuts a link in both directions, or mends it.
func (m *Mesh) Cut(node, link int, cut bool) error {
	return m.withLink(node, link, func(f *firmware.Mesh) { f.Cut(node, link, cut) })
}

// Kill ends a node, or starts it anew. Silent: its links do not hang up.
func (m *Mesh) Kill(node int, dead, silent bool) error {
	return m.with(node, func(f *firmware.Mesh) {
		m.pumping.Lock()
		defer m.pumping.Unlock()
		f.Kill(node, dead, silent)
	})
}

// Break sets what a link does to words that leave a node.
func (m *Mesh) Break(node, link int, faults Faults) error {
	return m.withLink(node, link, func(f *firmware.Mesh) { f.Break(node, link, faults) })
}

// Sense sets what a node's sensors read.
func (m *Mesh) Sense(node int, d abi.Diagnostic) error {
	return m.with(node, func(f *firmware.Mesh) { f.Sense(node, d) })
}

// State returns what a node counted.
func (m *Mesh) State(node int) (s State, err error) {
	err = m.with(node, func(f *firmware.Mesh) { s = f.Read(node) })
	return s, err
}

// View returns the diagnostic words of all nodes as one knows them.
func (m *Mesh) View(node int) (words []abi.Diagnostic, err error) {
	err = m.with(node, func(f *firmware.Mesh) { words = f.View(node) })
	return words, err
}

// Hop is a step of a route.
type Hop struct {
	Link   int
	Detour bool
}

// Next returns the link by which a node of this process sends to another, and whether
// that is a detour; false if there is no way.
func (m *Mesh) Next(from, to int) (link int, detour, ok bool, err error) {
	if !m.has(to) {
		return 0, false, false, fmt.Errorf("node %d: %w", to, ErrUnknown)
	}
	err = m.with(from, func(f *firmware.Mesh) { link, detour, ok = f.Route(from, from, to, -1, false) })
	return link, detour, ok, err
}

// Route returns the way between two nodes as each node on it knows it now, those of other
// processes as the first one of this process does; nil if there is none.
func (m *Mesh) Route(from, to int) ([]Hop, error) {
	if !m.has(to) {
		return nil, fmt.Errorf("node %d: %w", to, ErrUnknown)
	}
	var hops []Hop
	var hop Hop
	cameBy := -1
	for at := from; at != to; {
		var ok bool
		err := m.with(at, func(f *firmware.Mesh) { hop.Link, hop.Detour, ok = f.Route(at, from, to, cameBy, hop.Detour) })
		if err != nil {
			return nil, err
		}
		if !ok || len(hops) > m.nodes {
			return nil, nil
		}
		hops = append(hops, hop)
		at, cameBy = m.Neighbour(at, hop.Link), hop.Link^1
	}
	return hops, nil
}

// poll calls done until it is true, also when ctx ends. In a mesh without threads
// it lets time pass; else it waits.
func (m *Mesh) poll(ctx context.Context, done func() (bool, error)) error {
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if m.config.Threads == 0 {
			if err := m.Step(10*time.Microsecond, 100*time.Nanosecond); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		wait.Reset(200 * time.Microsecond)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
		}
	}
}

// Settle waits until every living node of this process knows all links that are
// there to be up, and its routes follow: as many as want says. After Open that is
// every link; after faults, what is left.
func (m *Mesh) Settle(ctx context.Context, want func(node int, words []abi.Diagnostic) bool) error {
	return m.poll(ctx, func() (bool, error) {
		for node := range m.nodes {
			if !m.here(node) {
				continue
			}
			s, err := m.State(node)
			if err != nil {
				return false, err
			}
			words, err := m.View(node)
			if err != nil || s.Alive && !want(node, words) {
				return false, err
			}
		}
		return true, nil
	})
}

// Well is what [Mesh.Settle] waits for in a mesh without faults.
func Well(_ int, words []abi.Diagnostic) bool {
	for _, w := range words {
		if !w.Valid() || w.Worst() >= abi.Broken {
			return false
		}
	}
	return true
}
