package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// member simulates its cells and exchanges their spikes.
type member struct {
	*network
	g     *group.Group
	first uint64 // GID of its first cell
	next  []float64
	fired []int
	due   [][]int32 // by step, around: the cells that fire in it

	ranks   [][]int32          // by own cell: who listens to it
	targets map[uint64][]int32 // by source: own cells that listen to it
	heard   []uint32           // by own cell: spikes that reached it
	sum     uint64             // of the hashes of all spikes received
	wrong   error              // the first spike that is not one of its cell

	out   [2][]group.Batch[spike] // of a step and the next, by rank
	times []sample                // by step

	handled bool                // the algorithm has a handler,
	handle  func(group.Package) // which gets each package of a step as it arrives
}

// sample is what one step took and moved at one member, as it travels to rank 0.
type sample struct {
	Exchange, Waiting, Total float64 // microseconds
	Out, In                  uint64  // spikes
}

// simulate is one member from end to end. It returns what all measured.
func (m *member) simulate(ctx context.Context) (*result, error) {
	g := m.g
	m.targets = make(map[uint64][]int32)
	if err := m.wire(ctx); err != nil {
		return nil, err
	}
	m.start()
	if err := g.Barrier(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := m.steps(ctx); err != nil {
		return nil, err
	}
	return m.collect(ctx, time.Since(begun))
}

// wire draws the connections of the own cells and tells the owners of their
// sources who listens: target lists by source rank, as simulators have them.
func (m *member) wire(ctx context.Context) error {
	from, to := m.span(m.g.Rank())
	m.first = from
	n := int(to - from)
	m.next, m.fired, m.heard = make([]float64, n), make([]int, n), make([]uint32, n)
	m.ranks = make([][]int32, n)
	for gid := from; gid < to; gid++ {
		m.sources(gid, func(source uint64) {
			m.targets[source] = append(m.targets[source], int32(gid-from))
		})
	}
	wanted := make([]group.Batch[spike], m.members)
	for source := range m.targets {
		o := m.owner(source)
		wanted[o].Events = append(wanted[o].Events, spike{GID: source})
	}
	in, err := group.Exchange(ctx, m.g, some(wanted))
	if err != nil {
		return err
	}
	for _, b := range in {
		for _, e := range b.Events {
			if m.owner(e.GID) != m.g.Rank() {
				return fmt.Errorf("rank %d wants cell %d of rank %d", b.Rank, e.GID, m.g.Rank())
			}
			m.ranks[e.GID-m.first] = append(m.ranks[e.GID-m.first], int32(b.Rank))
		}
	}
	for i := range m.out {
		m.out[i] = make([]group.Batch[spike], m.members)
	}
	return nil
}

// some leaves out the batches without events, and numbers the others.
func some(all []group.Batch[spike]) []group.Batch[spike] {
	var list []group.Batch[spike]
	for rank, b := range all {
		if len(b.Events) > 0 {
			list = append(list, group.Batch[spike]{Rank: rank, Events: b.Events})
		}
	}
	return list
}

// start sets every cell's clock.
func (m *member) start() {
	m.due = make([][]int32, int(longest)+2)
	for cell := range m.next {
		m.next[cell] = m.fires(m.first+uint64(cell), 0, 0)
		m.schedule(int32(cell))
	}
}

// schedule puts a cell on the list of the step in which it fires next.
func (m *member) schedule(cell int32) {
	at := int(m.next[cell]/stepMillis) % len(m.due)
	m.due[at] = append(m.due[at], cell)
}

// steps makes all steps: cells that are due fire, their spikes are exchanged, and those that arrive
// are delivered. The delay of a connection is one step; or two, and then the next step is computed
// while the spikes of this one are exchanged.
func (m *member) steps(ctx context.Context) error {
	m.times = make([]sample, m.millis)
	for step := range m.millis {
		begun := time.Now()
		if !m.overlap || step == 0 {
			m.fire(step)
		}
		exchanged := make(chan error, 1)
		exchange := func() { exchanged <- m.exchange(ctx, step) }
		if m.overlap {
			go exchange()
			if step+1 < m.millis {
				m.fire(step + 1)
			}
		} else {
			exchange()
		}
		if err := <-exchanged; err != nil {
			return err
		}
		m.times[step].Total = micros(time.Since(begun))
	}
	return nil
}

// fire lets the cells fire that are due in a step, and collects their spikes.
func (m *member) fire(step int) {
	out := m.out[step%2]
	for rank := range out {
		out[rank].Events = out[rank].Events[:0]
	}
	due := &m.due[step%len(m.due)]
	for _, cell := range *due {
		e := spike{m.first + uint64(cell), m.next[cell]}
		for _, rank := range m.ranks[cell] {
			out[rank].Events = append(out[rank].Events, e)
		}
		m.times[step].Out++
		m.fired[cell]++
		m.next[cell] = m.fires(e.GID, m.fired[cell], e.Time)
	}
	fired := *due
	*due = nil
	for _, cell := range fired {
		m.schedule(cell)
	}
}

// exchange exchanges the spikes of a step, and delivers those that arrive.
func (m *member) exchange(ctx context.Context, step int) error {
	s := &m.times[step]
	before := m.g.Stats()
	exchanging := time.Now()
	m.handle = func(p group.Package) { s.In += m.deliverAll(step, p.Rank, spikesOf(p.Data)) }
	in, err := group.Exchange(ctx, m.g, some(m.out[step%2]))
	m.handle = nil
	if err != nil {
		return err
	}
	s.Exchange = micros(time.Since(exchanging))
	s.Waiting = micros(m.g.Stats().Waiting - before.Waiting)
	if m.handled {
		in = nil // they are delivered
	}
	for _, b := range in {
		s.In += m.deliverAll(step, b.Rank, b.Events)
	}
	return m.wrong
}

// spikesOf returns the spikes of a package.
func spikesOf(data []byte) []spike {
	spikes := make([]spike, len(data)/16)
	for i := range spikes {
		e := data[16*i:]
		spikes[i] = spike{binary.NativeEndian.Uint64(e), math.Float64frombits(binary.NativeEndian.Uint64(e[8:]))}
	}
	return spikes
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// deliverAll delivers the spikes of a member, and returns how many there are.
func (m *member) deliverAll(step, from int, spikes []spike) uint64 {
	for _, e := range spikes {
		if err := m.deliver(step, from, e); err != nil && m.wrong == nil {
			m.wrong = err
		}
	}
	return uint64(len(spikes))
}

// deliver hands a spike to the cells that listen to its source.
func (m *member) deliver(step, from int, e spike) error {
	if m.owner(e.GID) != from || int(e.Time) != step {
		return fmt.Errorf("step %d: rank %d sent a spike of cell %d at %.3f ms", step, from, e.GID, e.Time)
	}
	for _, cell := range m.targets[e.GID] {
		m.heard[cell]++
	}
	m.sum += hash(e.GID, uint64(e.Time*1e6))
	return nil
}

// expected is the sum of what this member should have received, by the clocks of
// the cells that its own listen to.
func (m *member) expected() (spikes, sum uint64) {
	for source := range m.targets {
		t := m.fires(source, 0, 0)
		for n := 1; t < float64(m.millis); n++ {
			spikes++
			sum += hash(source, uint64(t*1e6))
			t = m.fires(source, n, t)
		}
	}
	return spikes, sum
}

// account is what a member has to say at the end.
type account struct {
	Received, Expected, Wrong, Delivered uint64
}

// collect checks what was received and gathers what all members measured.
func (m *member) collect(ctx context.Context, wall time.Duration) (*result, error) {
	a := account{}
	want, sum := m.expected()
	for _, s := range m.times {
		a.Received += s.In
	}
	for _, n := range m.heard {
		a.Delivered += uint64(n)
	}
	if a.Expected = want; a.Received != want || sum != m.sum {
		a.Wrong = 1
	}
	r := &result{network: m.network, wall: wall, stats: m.g.Stats()}
	if err := gather(ctx, m.g, []account{a}, func(all []account) { r.accounts = append(r.accounts, all...) }); err != nil {
		return nil, err
	}
	if err := gather(ctx, m.g, m.times, func(all []sample) { r.samples = append(r.samples, slices.Clone(all)) }); err != nil {
		return nil, err
	}
	for range m.g.Flush(ctx) { // the last step is over: an error would be of a member that left first
	}
	return r, nil
}

// gather hands the records of each member to fn, in order of rank.
func gather[T any](ctx context.Context, g *group.Group, own []T, fn func([]T)) error {
	out := make([]group.Batch[T], 0, g.Size())
	for rank := range g.Size() {
		if rank != g.Rank() {
			out = append(out, group.Batch[T]{Rank: rank, Events: own})
		}
	}
	in, err := group.Exchange(ctx, g, out)
	if err != nil {
		return err
	}
	byRank := make([][]T, g.Size())
	byRank[g.Rank()] = own
	for _, b := range in {
		byRank[b.Rank] = b.Events
	}
	for _, b := range byRank {
		fn(b)
	}
	return nil
}
