package refine

import (
	"fmt"
	"slices"
	"strings"
)

// Model says what is observed of a process.
type Model int

// Models of CSP.
const (
	Traces              Model = iota // what it may do
	Failures                         // … and what it may refuse when it is stable
	FailuresDivergences              // … and that it does not act for ever unseen
)

// RefusedError is a counterexample: what a process did, and what its specification does not allow then.
type RefusedError struct {
	Trace []Event
	Why   string
}

// Error describes the counterexample.
func (e *RefusedError) Error() string {
	var names []string
	for _, t := range e.Trace {
		names = append(names, string(t))
	}
	return fmt.Sprintf("after <%s>: %s", strings.Join(names, ", "), e.Why)
}

// node is a set of states in which the specification may be after a trace.
type node struct {
	after      map[Event]int
	accepts    [][]Event // minimal sets of events, one of which is offered when it is stable
	mayDiverge bool
}

// normal is a specification whose states a trace determines.
type normal struct {
	spec     *Process
	diverges []bool
	number   map[string]int
	sets     [][]int
	nodes    []node
}

// normalize makes the nodes of a specification.
func normalize(spec *Process) *normal {
	n := &normal{spec: spec, diverges: spec.divergent(), number: map[string]int{}}
	n.add([]int{0})
	for i := 0; i < len(n.sets); i++ {
		after := map[Event][]int{}
		for _, s := range n.sets[i] {
			for _, e := range spec.next[s] {
				if e.event != Tau {
					after[e.event] = append(after[e.event], e.to)
				}
			}
		}
		n.nodes[i].after = map[Event]int{}
		for event, to := range after {
			number := n.add(to) // may move the nodes
			n.nodes[i].after[event] = number
		}
	}
	return n
}

// add returns the node of some states and those that Tau leads to.
func (n *normal) add(states []int) int {
	seen := map[int]bool{}
	var set []int
	var d node
	for len(states) > 0 {
		s := states[len(states)-1]
		states = states[:len(states)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		set = append(set, s)
		d.mayDiverge = d.mayDiverge || n.diverges[s]
		for _, e := range n.spec.next[s] {
			if e.event == Tau {
				states = append(states, e.to)
			}
		}
	}
	slices.Sort(set)
	key := fmt.Sprint(set)
	if i, ok := n.number[key]; ok {
		return i
	}
	for _, s := range set {
		if offers, stable := n.spec.offers(s); stable {
			d.accepts = append(d.accepts, offers)
		}
	}
	d.accepts = minimal(d.accepts)
	n.number[key] = len(n.sets)
	n.sets = append(n.sets, set)
	n.nodes = append(n.nodes, d)
	return len(n.sets) - 1
}

// offers returns the events that a state offers, sorted, and whether it is stable: has no Tau.
func (p *Process) offers(s int) (events []Event, stable bool) {
	for _, e := range p.next[s] {
		if e.event == Tau {
			return nil, false
		}
		events = append(events, e.event)
	}
	slices.Sort(events)
	return slices.Compact(events), true
}

// within reports whether all of a are in b; both are sorted.
func within(a, b []Event) bool {
	for _, e := range a {
		if _, ok := slices.BinarySearch(b, e); !ok {
			return false
		}
	}
	return true
}

// minimal leaves out sets that have another one within.
func minimal(sets [][]Event) (kept [][]Event) {
	slices.SortFunc(sets, func(a, b []Event) int { return len(a) - len(b) })
	for _, s := range sets {
		if !slices.ContainsFunc(kept, func(k []Event) bool { return within(k, s) }) {
			kept = append(kept, s)
		}
	}
	return kept
}

// pair is a state of the process, and the node of the specification after the same trace.
type pair struct{ node, state int }

// step is how a pair was reached.
type step struct {
	from  int // index of the pair before; -1: the first
	event Event
}

// search follows both at once.
type search struct {
	spec     *normal
	process  *Process
	diverges []bool
	model    Model
	seen     map[pair]bool
	pairs    []pair
	steps    []step
}

// Refines returns nil if a process refines a specification in a model, and the number of pairs of
// states that were compared. Else the error is a *RefusedError.
func Refines(spec, process *Process, model Model) (int, error) {
	s := &search{spec: normalize(spec), process: process, diverges: process.divergent(), model: model, seen: map[pair]bool{}}
	s.reach(pair{}, step{-1, Tau})
	for i := 0; i < len(s.pairs); i++ {
		if err := s.compare(i); err != nil {
			return len(s.pairs), err
		}
	}
	return len(s.pairs), nil
}

// reach notes a pair.
func (s *search) reach(p pair, by step) {
	if !s.seen[p] {
		s.seen[p] = true
		s.pairs = append(s.pairs, p)
		s.steps = append(s.steps, by)
	}
}

// compare holds a pair's state against its node, and goes on.
func (s *search) compare(i int) error {
	p := s.pairs[i]
	n := &s.spec.nodes[p.node]
	if s.model == FailuresDivergences {
		if n.mayDiverge {
			return nil // whatever it does from here on is allowed
		}
		if s.diverges[p.state] {
			return s.refused(i, "it may act for ever unseen")
		}
	}
	if offers, stable := s.process.offers(p.state); stable && s.model != Traces {
		if !slices.ContainsFunc(n.accepts, func(a []Event) bool { return within(a, offers) }) {
			return s.refused(i, fmt.Sprintf("it offers only %v, not one of %v", offers, n.accepts))
		}
	}
	for _, e := range s.process.next[p.state] {
		to, ok := n.after[e.event]
		switch {
		case e.event == Tau:
			s.reach(pair{p.node, e.to}, step{i, Tau})
		case !ok:
			return s.refused(i, fmt.Sprintf("it does %s", e.event))
		default:
			s.reach(pair{to, e.to}, step{i, e.event})
		}
	}
	return nil
}

// refused makes the counterexample that ends at a pair.
func (s *search) refused(i int, why string) error {
	var trace []Event
	for ; i >= 0; i = s.steps[i].from {
		if s.steps[i].event != Tau {
			trace = append(trace, s.steps[i].event)
		}
	}
	slices.Reverse(trace)
	return &RefusedError{trace, why}
}
