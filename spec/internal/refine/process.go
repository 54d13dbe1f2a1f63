package refine

import "fmt"

// Event is an action of a process that its environment sees and takes part in.
type Event string

// Tau is an action that nobody else sees.
const Tau Event = ""

// Process is a process as states and what each may do next.
type Process struct{ next [][]edge } // state 0 is the first

type edge struct {
	event Event
	to    int
}

// States returns the number of states.
func (p *Process) States() int { return len(p.next) }

// Explore makes a process of its first state and of a function that calls do for each action of a
// state. More states than the bound are an error.
func Explore[S comparable](first S, steps func(s S, do func(Event, S)), bound int) (*Process, error) {
	number := map[S]int{first: 0}
	states := []S{first}
	p := &Process{}
	for i := 0; i < len(states); i++ {
		var edges []edge
		steps(states[i], func(e Event, to S) {
			n, ok := number[to]
			if !ok {
				n = len(states)
				number[to] = n
				states = append(states, to)
			}
			edges = append(edges, edge{e, n})
		})
		if len(states) > bound {
			return nil, fmt.Errorf("more than %d states", bound)
		}
		p.next = append(p.next, edges)
	}
	return p, nil
}

// Parallel runs two processes, which do the events of a set together and all others alone.
func Parallel(p, q *Process, together func(Event) bool, bound int) (*Process, error) {
	return Explore([2]int{}, func(s [2]int, do func(Event, [2]int)) {
		for _, a := range p.next[s[0]] {
			if a.event == Tau || !together(a.event) {
				do(a.event, [2]int{a.to, s[1]})
				continue
			}
			for _, b := range q.next[s[1]] {
				if a.event == b.event {
					do(a.event, [2]int{a.to, b.to})
				}
			}
		}
		for _, b := range q.next[s[1]] {
			if b.event == Tau || !together(b.event) {
				do(b.event, [2]int{s[0], b.to})
			}
		}
	}, bound)
}

// Hide makes the events of a set invisible.
func Hide(p *Process, hidden func(Event) bool) *Process {
	h := &Process{next: make([][]edge, len(p.next))}
	for s, edges := range p.next {
		for _, e := range edges {
			if e.event != Tau && hidden(e.event) {
				e.event = Tau
			}
			h.next[s] = append(h.next[s], e)
		}
	}
	return h
}

// divergent returns the states from which a process may do Tau for ever.
func (p *Process) divergent() []bool {
	// A state that is left after those without a Tau to a state that is left were removed, again and
	// again, diverges.
	count := make([]int, len(p.next))
	before := make([][]int, len(p.next))
	var quiet []int
	for s, edges := range p.next {
		for _, e := range edges {
			if e.event == Tau {
				count[s]++
				before[e.to] = append(before[e.to], s)
			}
		}
		if count[s] == 0 {
			quiet = append(quiet, s)
		}
	}
	diverges := make([]bool, len(p.next))
	for s := range diverges {
		diverges[s] = true
	}
	for len(quiet) > 0 {
		s := quiet[len(quiet)-1]
		quiet = quiet[:len(quiet)-1]
		diverges[s] = false
		for _, b := range before[s] {
			if count[b]--; count[b] == 0 {
				quiet = append(quiet, b)
			}
		}
	}
	return diverges
}
