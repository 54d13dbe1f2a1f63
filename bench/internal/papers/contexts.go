package papers

import (
	"fmt"

	"github.com/nfcomms/nfcomms/internal/model"
)

// Contexts models one microengine whose hardware contexts hide the latency of
// memory: only one computes at a time, and one that waits for memory lets the
// next compute.
type Contexts struct {
	Before   int    // cycles of computing before an update's first memory operation
	Between  int    // … and before its second
	Latency  [2]int // cycles of the two memory operations
	Overhead int    // cycles of starting and ending a run
	Switch   int    // extra cycles of each context, if there are several
}

// PaperContexts is an update of the sketches of the bulk-transfer paper: 49
// cycles of computing, 39 of them the hash, and two operations on cluster local
// scratch that take 75 cycles of sleep. How the other ten cycles divide is not
// published; the overheads are what its runs of eight updates took beyond that.
var PaperContexts = Contexts{Before: 44, Between: 5, Latency: [2]int{37, 38}, Overhead: 134, Switch: 6}

// In returns the same update with both memory operations in a type of memory, of mean latency.
func (m Contexts) In(mem model.Memory) Contexts {
	sum := mem.Least + mem.Most
	m.Latency = [2]int{sum / 2, sum - sum/2}
	return m
}

// Cycles splits a run in what was computed and what was slept.
type Cycles struct {
	Compute, Sleep int
}

// Total returns the length of the run.
func (c Cycles) Total() int { return c.Compute + c.Sleep }

// Predict is the formula: with one context every operation is slept through,
// with enough of them all but the last one is hidden.
func (m Contexts) Predict(updates, contexts int) Cycles {
	c := Cycles{Compute: m.Overhead + updates*(m.Before+m.Between)}
	if contexts == 1 {
		c.Sleep = updates * (m.Latency[0] + m.Latency[1])
		return c
	}
	c.Compute += contexts * m.Switch
	c.Sleep = m.Latency[1]
	return c
}

// update is where one context stands in its present update.
type update struct {
	left  int // updates still to do, this one included
	step  int // 0: before the first operation, 1: between the two
	ready int // cycle at which its memory operation is done
}

// Simulate runs the updates on so many contexts, event by event: updates are
// dealt out evenly, and of the contexts that are ready the one that waited
// longest computes.
func (m Contexts) Simulate(updates, contexts int) (Cycles, error) {
	if updates < 1 || contexts < 1 || min(m.Before, m.Between, m.Latency[0], m.Latency[1]) < 0 {
		return Cycles{}, fmt.Errorf("%w: %d updates on %d contexts, %+v", ErrConfig, updates, contexts, m)
	}
	run := make([]update, contexts)
	for i := range run {
		run[i].left = updates / contexts
		if i < updates%contexts {
			run[i].left++
		}
	}
	now, c := 0, Cycles{Compute: m.Overhead}
	if contexts > 1 {
		c.Compute += contexts * m.Switch
	}
	for {
		u := earliest(run)
		if u == nil {
			break
		}
		if u.ready > now {
			c.Sleep += u.ready - now
			now = u.ready
		}
		work, latency := u.advance(m)
		c.Compute += work
		now += work
		u.ready = now + latency
	}
	for _, u := range run { // the last operations have nobody to hide behind
		if u.ready > now {
			c.Sleep += u.ready - now
			now = u.ready
		}
	}
	return c, nil
}

// earliest returns the context that may continue first, nil when all are done.
func earliest(run []update) *update {
	var first *update
	for i := range run {
		u := &run[i]
		if u.left > 0 && (first == nil || u.ready < first.ready) {
			first = u
		}
	}
	return first
}

// advance goes to the next memory operation: it returns the cycles until then,
// and those that the operation takes.
func (u *update) advance(m Contexts) (work, latency int) {
	if u.step == 0 {
		u.step = 1
		return m.Before, m.Latency[0]
	}
	u.step = 0
	u.left--
	return m.Between, m.Latency[1]
}
