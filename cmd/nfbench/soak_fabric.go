//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Faults of a round on a fabric. What links see of bad words is counted beside them.
const (
	faultCut   = "link cut"
	faultNode  = "node killed"
	faultAlive = "node lost that was not killed"
	faultWords = "errors that links saw"
)

// soakFabricTransfer bounds a transfer over a fabric: some packets.
const soakFabricTransfer = 16 << 10

// soakCutMost is how long a link stays cut, or whole, at most.
const soakCutMost = 20 * time.Millisecond

// soakedFabric soaks the nodes of a fabric in this process.
type soakedFabric struct {
	o       *soakOptions
	address string
	dev     *nfcomms.Device
	nodes   []*soakedNode // all but the device's own
	errors  []uint64      // that the links of each node saw
}

// soakedNode is another node, and who exchanges with it.
type soakedNode struct {
	place nfcomms.FabricPlace
	dev   *nfcomms.Device
	over  chan struct{} // closed when its loss was noticed in this round, or it ended
	end   soakEnd
}

// round exchanges with all nodes, and breaks something meanwhile.
func (s *soakedFabric) round(ctx context.Context, b *SoakBooks, chance *rand.Rand, length time.Duration) error {
	if err := s.open(ctx); err != nil {
		return err
	}
	calm := context.WithoutCancel(ctx) // an interrupt ends rounds in good order
	asked := make(chan struct{})
	var all sync.WaitGroup
	for i, n := range s.nodes {
		job := &soakJob{Seed: b.Seed + b.Rounds*64 + uint64(i), Spoil: s.o.spoil, Mortal: true}
		e := newSoakExchange(job, n.dev, soakFabricTransfer)
		n.over = make(chan struct{})
		e.heard = sync.OnceFunc(func() { close(n.over) })
		if err := e.begin(calm); err != nil {
			close(asked)
			all.Wait()
			return fmt.Errorf("node %v: %w", n.place, err)
		}
		all.Go(func() {
			n.end = e.run(calm, asked)
			e.heard()
		})
	}
	victim, err := s.inject(ctx, b, chance, length)
	close(asked)
	all.Wait()
	s.books(b, victim)
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
	state, err := s.dev.Fabric().State()
	if err != nil {
		return err
	}
	s.errors = make([]uint64, len(state.Nodes))
	for i := 1; i < len(state.Nodes); i++ {
		x, y, z := uint8(i%state.Side[0]), uint8(i/state.Side[0]%state.Side[1]), uint8(i/state.Side[0]/state.Side[1])
		n := &soakedNode{place: nfcomms.Place(x, y, z)}
		if n.dev, err = s.dev.Node(ctx, x, y, z); err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
	}
	return nil
}

// inject cuts links for a time, or kills a node until that is noticed.
func (s *soakedFabric) inject(ctx context.Context, b *SoakBooks, chance *rand.Rand, length time.Duration) (victim *soakedNode, err error) {
	if chance.IntN(2) == 0 {
		victim = s.nodes[chance.IntN(len(s.nodes))]
		soakSleep(ctx, length/2)
		return victim, s.kill(ctx, b, victim)
	}
	for end := time.Now().Add(length); time.Now().Before(end) && ctx.Err() == nil; {
		if err := s.cut(ctx, b, chance); err != nil {
			return nil, err
		}
		soakSleep(ctx, time.Duration(chance.Int64N(int64(soakCutMost))))
	}
	return nil, nil
}

// kill kills a node until who exchanges with it has noticed.
func (s *soakedFabric) kill(ctx context.Context, b *SoakBooks, n *soakedNode) error {
	if err := s.dev.Fabric().KillNode(n.place, true); err != nil {
		return err
	}
	b.fault(faultNode)
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), soakPatience)
	defer cancel()
	select {
	case <-n.over:
	case <-patience.Done():
		b.wrong("node %v: nobody noticed within %v that it was gone", n.place, soakPatience)
	}
	return s.dev.Fabric().KillNode(n.place, false)
}

// cut cuts a link for a moment.
func (s *soakedFabric) cut(ctx context.Context, b *SoakBooks, chance *rand.Rand) error {
	state, err := s.dev.Fabric().State()
	if err != nil {
		return err
	}
	n, link := s.nodes[chance.IntN(len(s.nodes))], chance.IntN(len(state.Nodes[0].Links))
	if !state.Nodes[0].Links[link].Joined {
		return nil // a torus with one node a side has no such links
	}
	if err := s.dev.Fabric().CutLink(n.place, link, true); err != nil {
		return err
	}
	b.fault(faultCut)
	soakSleep(ctx, time.Duration(chance.Int64N(int64(soakCutMost))))
	return s.dev.Fabric().CutLink(n.place, link, false)
}

// books takes what the exchanges came to.
func (s *soakedFabric) books(b *SoakBooks, victim *soakedNode) {
	for _, n := range s.nodes {
		b.Operations += n.end.Operations
		b.Bytes += n.end.Bytes
		switch {
		case n.end.Wrong != "":
			b.wrong("node %v: %s", n.place, n.end.Wrong)
		case n.end.Why != soakAsked:
			b.wrong("node %v: %s", n.place, n.end.Why)
		case n == victim && n.end.Resets == 0:
			b.wrong("node %v: nobody noticed that it was gone", n.place)
		case n != victim && n.end.Resets > 0:
			b.Faults[faultAlive] += n.end.Resets
		}
	}
	state, err := s.dev.Fabric().State()
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
			b.Faults[faultWords] += errors - s.errors[i]
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
