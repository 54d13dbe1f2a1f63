package refine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// crowd compares a system of messages to the device with as many synchronous channels. All channels are
// alike: states that differ in the names of channels alone are one. The specification is one node for
// each channel, as its channels share nothing.
type crowd struct {
	*rendezvous
	one    *normal
	names  map[Event]name
	number map[packed]int32
	states []packed
	from   []int32 // of a Tau, with to
	to     []int32
}

// crowdBound is the number of states that are compared at most, each of some 200 bytes.
const crowdBound = 60_000_000

// name is an event of a channel, as channel 0 has it.
type name struct {
	event   Event
	channel int
}

// packed is a system and its nodes: a word for each channel, then the rings.
type packed [most + 1]uint64

// pack gives channels the order of their words.
func (r *rendezvous) pack(s *system, nodes *[most]int) (p packed) {
	type word struct{ end, rings uint64 }
	var words [most]word
	for c := range r.channels {
		e := &s.end[c]
		w := word{end: uint64(e.stand)<<40 | uint64(e.marks)<<24 | uint64(nodes[c])<<16 |
			uint64(e.send)<<13 | uint64(e.read)<<10 | uint64(e.device)<<6 | uint64(e.id)<<2 | uint64(e.next)}
		for i := range places {
			if i < int(s.h2d.len) && int(s.h2d.slot[i].channel) == c {
				w.rings |= 1 << i
			}
			if i < int(s.d2h.len) && int(s.d2h.slot[i].channel) == c {
				w.rings |= 8 << i
			}
		}
		words[c] = w
	}
	var order [most]int
	for c := range r.channels {
		at := c // those before are in order
		for ; at > 0 && (words[c].end < words[order[at-1]].end || words[c].end == words[order[at-1]].end && words[c].rings < words[order[at-1]].rings); at-- {
			order[at] = order[at-1]
		}
		order[at] = c
	}
	var place [most]uint64
	for i, c := range order[:r.channels] {
		p[i], place[c] = words[c].end, uint64(i)
	}
	for i, ring := range []*ring{&s.h2d, &s.d2h} {
		v := uint64(ring.len)
		for k := range places {
			if k < int(ring.len) {
				m := ring.slot[k]
				v |= (uint64(m.kind)<<4 | place[m.channel]<<2 | uint64(m.id)) << (2 + 10*k)
			}
		}
		p[most] |= v << (32 * i)
	}
	return p
}

// unpack is the inverse of pack.
func (r *rendezvous) unpack(p *packed, s *system, nodes *[most]int) {
	*s = system{}
	for c := range r.channels {
		w := p[c]
		nodes[c] = int(w >> 16 & 0xff)
		s.end[c] = end{
			stand: proto.Stand(w >> 40), marks: proto.DeviceMarks(w >> 24), send: call(w >> 13 & 7), read: call(w >> 10 & 7),
			device: proto.DeviceState(w >> 6 & 15), id: uint8(w >> 2 & 3), next: uint8(w & 3),
		}
	}
	for i, ring := range []*ring{&s.h2d, &s.d2h} {
		v := p[most] >> (32 * i)
		for range v & 3 {
			m := v >> (2 + 10*int(ring.len))
			*ring = ring.put(slot{wire.Type(m >> 4 & 0x3f), int8(m >> 2 & 3), uint8(m & 3)})
		}
	}
}

// reach returns the number of a state.
func (c *crowd) reach(s *system, nodes *[most]int) int32 {
	p := c.pack(s, nodes)
	n, ok := c.number[p]
	if !ok {
		n = int32(len(c.states))
		c.number[p] = n
		c.states = append(c.states, p)
	}
	return n
}

// refines explores the states, and compares each.
func (c *crowd) refines() error {
	var first system
	var nodes [most]int
	for k := range c.channels {
		first.end[k].next = 1
	}
	c.reach(&first, &nodes)
	for i := 0; i < len(c.states); i++ {
		if len(c.states) > crowdBound {
			return fmt.Errorf("more than %d states", crowdBound)
		}
		if err := c.expand(int32(i)); err != nil {
			return err
		}
	}
	return c.diverges()
}

// expand compares a state, and goes on.
func (c *crowd) expand(i int32) (err error) {
	var s system
	var nodes [most]int
	c.unpack(&c.states[i], &s, &nodes)
	var offers [most][]Event
	stable := true
	c.steps(s, func(e Event, to system) {
		if e == Tau {
			stable = false
			c.from, c.to = append(c.from, i), append(c.to, c.reach(&to, &nodes))
			return
		}
		n, ok := c.names[e]
		after, allowed := c.one.nodes[nodes[n.channel]].after[n.event]
		if !ok || !allowed {
			err = fmt.Errorf("it does %s", e)
			return
		}
		offers[n.channel] = append(offers[n.channel], n.event)
		next := nodes
		next[n.channel] = after
		c.reach(&to, &next)
	})
	for k := 0; stable && err == nil && k < c.channels; k++ {
		slices.Sort(offers[k])
		if !slices.ContainsFunc(c.one.nodes[nodes[k]].accepts, func(a []Event) bool { return within(a, offers[k]) }) {
			err = fmt.Errorf("it offers only %v of a channel, not one of %v", offers[k], c.one.nodes[nodes[k]].accepts)
		}
	}
	return err
}

// diverges looks for a cycle of Tau: what is left once states without a Tau to one that is left went.
func (c *crowd) diverges() error {
	count, first := make([]int32, len(c.states)), make([]int32, len(c.states)+1)
	for k := range c.from {
		count[c.from[k]]++
		first[c.to[k]+1]++
	}
	for s := range c.states {
		first[s+1] += first[s]
	}
	before, at := make([]int32, len(c.from)), slices.Clone(first)
	for k, to := range c.to {
		before[at[to]] = c.from[k]
		at[to]++
	}
	var quiet []int32
	for s := range count {
		if count[s] == 0 {
			quiet = append(quiet, int32(s))
		}
	}
	left := len(count)
	for ; len(quiet) > 0; left-- {
		s := quiet[len(quiet)-1]
		quiet = quiet[:len(quiet)-1]
		for _, b := range before[first[s]:first[s+1]] {
			if count[b]--; count[b] == 0 {
				quiet = append(quiet, b)
			}
		}
	}
	if left > 0 {
		return errors.New("it may act for ever unseen")
	}
	return nil
}

// crowd makes the search of a system.
func (r *rendezvous) crowd(t *testing.T) *crowd {
	t.Helper()
	c := &crowd{rendezvous: r, one: normalize(synchronous(t, 0)), names: map[Event]name{}, number: map[packed]int32{}}
	require.Less(t, len(c.one.nodes), 256)
	for _, n := range c.one.nodes {
		for e := range n.after {
			for k := range r.channels {
				c.names[event(strings.TrimSuffix(string(e), ".0"), k)] = name{e, k}
			}
		}
	}
	return c
}

// TestCrowd: -channels of messages, with rings of -slots, refine synchronous channels.
func TestCrowd(t *testing.T) {
	r := &rendezvous{channels: *channels, slots: int8(*slots), host: proto.Default(), device: proto.DefaultDevice()}
	c := r.crowd(t)
	err := c.refines()
	t.Logf("%d channels, rings of %d: %d states but for the names of channels", r.channels, r.slots, len(c.states))
	require.NoError(t, err)
}

// TestNoCrowd: systems that are broken are refused like this, too, and a cycle of Tau is found.
func TestNoCrowd(t *testing.T) {
	host, silent := tables(t, func(r *proto.DeviceRow) {
		if r.Direction == abi.H2D && r.State == proto.DeviceMessage && r.Input == proto.HearWithdraw {
			r.Put = proto.PutNothing
		}
	})
	_, device := tables(t, func(*proto.DeviceRow) {})
	for _, r := range []rendezvous{
		{device: device, blocking: true}, {device: device, impolite: true}, {device: silent},
	} {
		r.channels, r.slots, r.host = 2, 1, host
		require.Error(t, r.crowd(t).refines())
	}
	c := crowd{states: make([]packed, 3), from: []int32{0, 1, 2}, to: []int32{1, 2, 1}}
	require.Error(t, c.diverges())
	c.to[2], c.from[2] = 2, 0
	require.NoError(t, c.diverges())
}
