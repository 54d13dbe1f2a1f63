//go:build linux

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// Faults of a round on a fabric. Bad words that links see are counted beside them.
const (
	faultCut    = "link cut"
	faultNode   = "node killed"
	faultSilent = "node killed silently"
	faultAlive  = "node lost that was not killed"
	faultJoint  = "joint lost between nodes that were not killed"
	faultWords  = "errors that links saw"
)

// soakFabricTransfer bounds a transfer over a fabric: some packets.
const soakFabricTransfer = 16 << 10

// soakCutMost is how long a link stays cut, or whole, at most.
const soakCutMost = 20 * time.Millisecond

// soakedFabric soaks the nodes of a fabric in this process.
type soakedFabric struct {
	o       *options
	address string
	dev     *nfcomms.Device
	nodes   []*soakedNode // the last one is the device's own
	parties []*soakedParty
	errors  []uint64 // that the links of each node saw
}

// soakedNode is a node, which may be killed unless it is the device's own.
type soakedNode struct {
	x, y, z uint8
	dev     *nfcomms.Device
}

func (n *soakedNode) place() fabric.Place { return fabric.At(n.x, n.y, n.z) }

// target is a target of the node as processes of others name it.
func (n *soakedNode) target(t nfcomms.Target) nfcomms.Target { return fabric.Target(n.place(), t) }

// soakedParty exchanges with a node, or with one through another by a joint.
type soakedParty struct {
	name    string
	nodes   []*soakedNode // with any of which it is lost
	joint   *soakedJoint
	over    chan struct{} // closed when its loss was noticed in this round, or it ended
	noticed time.Time     // when
	end     soakEnd
}

// noticedAs is what books of losses call a party.
func (p *soakedParty) noticedAs() string {
	if p.joint != nil {
		return ", noticed by joints"
	}
	return ", noticed by its host"
}

// begin begins to exchange.
func (p *soakedParty) begin(ctx context.Context, job *soakJob) (*soakExchange, error) {
	e := newSoakExchange(job, p.nodes[0].dev, soakFabricTransfer)
	e.far = p.joint
	p.over, p.end = make(chan struct{}), soakEnd{}
	e.heard = sync.OnceFunc(func() {
		p.noticed = time.Now()
		close(p.over)
	})
	return e, e.begin(ctx)
}

// round exchanges with all nodes and by all joints, and breaks something meanwhile.
func (s *soakedFabric) round(ctx context.Context, b *Books, chance *rand.Rand, length time.Duration) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	calm := context.WithoutCancel(ctx) // an interrupt ends rounds in good order
	asked := make(chan struct{})
	var all sync.WaitGroup
	for i, p := range s.parties {
		e, err := p.begin(calm, &soakJob{Seed: b.Seed + b.Rounds*64 + uint64(i), Spoil: s.o.spoil, Mortal: true})
		if err != nil {
			close(asked)
			all.Wait()
			return fmt.Errorf("%s: %w", p.name, err)
		}
		all.Go(func() {
			p.end = e.run(calm, asked)
			e.heard()
		})
	}
	victim, err := s.inject(ctx, b, chance, length)
	close(asked)
	all.Wait()
	s.books(calm, b, victim)
	return err
}

// open opens the device and those of all other nodes.
func (s *soakedFabric) open(ctx context.Context) (err error) {
	if s.dev != nil {
		return nil
	}
	if s.dev, err = nfcomms.Open(ctx, s.address); err != nil {
		return err
	}
	state, err := fabric.Of(s.dev).State(ctx)
	if err != nil {
		return err
	}
	s.errors = make([]uint64, len(state.Nodes))
	for i := 1; i < len(state.Nodes); i++ {
		n := &soakedNode{x: uint8(i % state.Side[0]), y: uint8(i / state.Side[0] % state.Side[1]), z: uint8(i / state.Side[0] / state.Side[1])}
		if n.dev, err = fabric.Device(ctx, s.dev, n.place()); err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
		s.parties = append(s.parties, &soakedParty{name: fmt.Sprintf("node %v", n.place()), nodes: []*soakedNode{n}})
	}
	s.nodes = append(s.nodes, &soakedNode{dev: s.dev})
	if s.o.joints {
		return s.join(ctx)
	}
	return nil
}

// join has each node speak to the next one.
func (s *soakedFabric) join(ctx context.Context) error {
	relay, err := buildRelay(ctx)
	if err != nil {
		return err
	}
	for i, n := range s.nodes {
		to := s.nodes[(i+1)%len(s.nodes)]
		s.parties = append(s.parties, &soakedParty{
			name: fmt.Sprintf("joint of %v to %v", n.place(), to.place()), nodes: []*soakedNode{n, to}, joint: &soakedJoint{n, to, relay},
		})
	}
	return nil
}

// inject cuts links for a time, or kills a node until that is noticed.
func (s *soakedFabric) inject(ctx context.Context, b *Books, chance *rand.Rand, length time.Duration) (victim *soakedNode, err error) {
	if chance.IntN(2) == 0 {
		victim = s.nodes[chance.IntN(len(s.nodes)-1)]
		silent := chance.IntN(2) == 0
		soakSleep(ctx, length/2)
		return victim, s.kill(ctx, b, victim, silent)
	}
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; {
		if err := s.cut(ctx, b, chance); err != nil {
			return nil, err
		}
		soakSleep(ctx, time.Duration(chance.Int64N(int64(soakCutMost))))
	}
	return nil, nil
}

// kill kills a node until all that exchange with it have noticed.
func (s *soakedFabric) kill(ctx context.Context, b *Books, n *soakedNode, silent bool) (err error) {
	fault, since := faultNode, time.Now()
	if silent {
		fault, err = faultSilent, fabric.Of(s.dev).SilenceNode(ctx, n.place())
	} else {
		err = fabric.Of(s.dev).KillNode(ctx, n.place(), true)
	}
	if err != nil {
		return err
	}
	b.fault(fault)
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), soakPatience)
	defer cancel()
	for _, p := range s.parties {
		if !slices.Contains(p.nodes, n) {
			continue
		}
		select {
		case <-p.over:
			b.noticed(fault+p.noticedAs(), p.noticed.Sub(since))
		case <-patience.Done():
			b.wrong("%s: nobody noticed within %v that %v was gone", p.name, soakPatience, n.place())
		}
	}
	return fabric.Of(s.dev).KillNode(context.WithoutCancel(ctx), n.place(), false)
}

// cut cuts a link for a moment.
func (s *soakedFabric) cut(ctx context.Context, b *Books, chance *rand.Rand) error {
	state, err := fabric.Of(s.dev).State(ctx)
	if err != nil {
		return err
	}
	n, link := s.nodes[chance.IntN(len(s.nodes))], chance.IntN(len(state.Nodes[0].Links))
	if !state.Nodes[0].Links[link].Joined {
		return nil // a torus with one node a side has no such links
	}
	if err := fabric.Of(s.dev).CutLink(ctx, n.place(), link, true); err != nil {
		return err
	}
	b.fault(faultCut)
	soakSleep(ctx, time.Duration(chance.Int64N(int64(soakCutMost))))
	return fabric.Of(s.dev).CutLink(context.WithoutCancel(ctx), n.place(), link, false)
}

// books takes what the exchanges came to.
func (s *soakedFabric) books(ctx context.Context, b *Books, victim *soakedNode) {
	for _, p := range s.parties {
		hit := victim != nil && slices.Contains(p.nodes, victim)
		b.add(p.end)
		switch {
		case !b.ended(p.name, p.end, nil, soakAsked):
		case hit && p.end.Resets == 0:
			b.wrong("%s: nobody noticed that %v was gone", p.name, victim.place())
		case !hit && p.joint != nil:
			b.count(faultJoint, p.end.Resets)
		case !hit:
			b.count(faultAlive, p.end.Resets)
		}
	}
	state, err := fabric.Of(s.dev).State(ctx)
	if err != nil {
		b.wrong("state of the fabric: %v", err)
		return
	}
	for i, node := range state.Nodes {
		var errors uint64
		for _, l := range node.Links {
			errors += l.Errors
		}
		if errors > s.errors[i] { // less: it began anew
			b.count(faultWords, errors-s.errors[i])
		}
		s.errors[i] = errors
	}
}

// close closes the device.
func (s *soakedFabric) close() error {
	if s.dev == nil {
		return nil
	}
	if err := s.dev.Close(); err != nil {
		return fmt.Errorf("close the fabric: %w", err)
	}
	return nil
}
