//go:build linux

package groups

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/group/torus"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Names of the peers of groups.
const (
	nameLocal    = "mutex and slice"
	nameChannels = "go channels"
	nameRead     = "isend, read"
	nameShared   = "isend, zero copy, read"
	nameCopyRead = "memcpy, read"
)

// newGroupSide is a contender that exchanges by an algorithm.
func newGroupSide(ctx context.Context, s exchangeShape, address string, o group.Options) (*compare.Contender, error) {
	var m *members
	var err error
	switch s.transport {
	case TransportShm:
		return newProcessSide(ctx, s, o)
	case transportFabric:
		m, err = joinNodes(ctx, s, address, o)
	default:
		m, err = joinMembers(ctx, s, group.NewMesh(s.members), o)
	}
	if err != nil {
		return nil, err
	}
	return &compare.Contender{Name: o.Algorithm, Size: s.size, Batch: s.batch(), Run: m.run, CPU: compare.SelfCPU, Close: m.close, Chose: func() string { return chose(o.Algorithm, m.groups[0]) }}, nil
}

// chose is what auto took at last, and why; of another algorithm nothing.
func chose(algorithm string, g *group.Group) string {
	if algorithm != group.Auto {
		return ""
	}
	s := g.Stats()
	return s.Algorithm + ": " + s.Why
}

// members are goroutines that do steps when they are told to.
type members struct {
	groups []*group.Group
	out    [][]group.Package
	under  []io.Closer // what joins them, closed in this order
	ones   []int       // of the bytes that came; nil: nobody reads them
}

// joinNodes has members on the nodes of a fabric.
func joinNodes(ctx context.Context, s exchangeShape, address string, o group.Options) (*members, error) {
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	t, err := torus.Open(ctx, dev, s.members)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	m, err := joinMembers(ctx, s, t, o)
	if err != nil {
		return nil, errors.Join(err, t.Close(), dev.Close())
	}
	m.under = []io.Closer{t, dev}
	return m, nil
}

func joinMembers(ctx context.Context, s exchangeShape, t group.Transport, like group.Options) (*members, error) {
	m := &members{groups: make([]*group.Group, s.members), out: make([][]group.Package, s.members)}
	err := together(s.members, func(rank int) (err error) {
		m.groups[rank], err = group.Join(ctx, t, s.options(like, rank))
		return err
	})
	for rank := range m.out {
		m.out[rank] = s.packages(rank)
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// together runs fn for every rank at once.
func together(n int, fn func(rank int) error) error {
	ended := make(chan error, n) // one for each, so that none blocks
	for rank := range n {
		go func() { ended <- fn(rank) }()
	}
	var errs []error
	for range n {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// run has all members do n steps.
func (m *members) run(ctx context.Context, n int) (time.Duration, error) {
	return compare.Timed(func() error {
		return together(len(m.groups), func(rank int) error {
			for range n {
				in, err := m.groups[rank].Exchange(ctx, m.out[rank])
				if err != nil {
					return err
				}
				if m.ones != nil {
					for _, p := range in {
						m.ones[rank] += readAll(p.Data)
					}
				}
			}
			return nil
		})
	})
}

// newReadSide has members read what they get, all of it: copies of their own, or, as
// nameShared, where its senders have it.
func newReadSide(ctx context.Context, s exchangeShape, name string) (*compare.Contender, error) {
	m, err := joinMembers(ctx, s, group.NewMesh(s.members), group.Options{Algorithm: "isend", ZeroCopy: name == nameShared})
	if err != nil {
		return nil, err
	}
	m.ones = make([]int, s.members)
	return &compare.Contender{Name: name, Size: s.size, Batch: s.batch(), Run: m.run, CPU: compare.SelfCPU, Close: m.close}, nil
}

// readAll looks at all bytes, as fast as a processor does, and counts ones.
func readAll(data []byte) int { return bytes.Count(data, []byte{1}) }

func (m *members) close() error {
	var errs []error
	for _, g := range m.groups {
		if g != nil {
			errs = append(errs, g.Close())
		}
	}
	for _, c := range m.under {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// inbox is what a member of the local optimum shares: bytes appended under a
// mutex, by parity of the step. A neighbour is at most a step ahead.
type inbox struct {
	sync.Mutex
	more  sync.Cond
	bytes [2][]byte
	came  [2]int
}

// newLocalSide is the honest local optimum.
func newLocalSide(s exchangeShape) *compare.Contender {
	all := make([]inbox, s.members)
	for i := range all {
		all[i].more.L = &all[i].Mutex
	}
	steps := make([]int, s.members)
	out := make([][]group.Package, s.members)
	for rank := range out {
		out[rank] = s.packages(rank)
	}
	step := func(rank int) {
		at := steps[rank] % 2
		steps[rank]++
		for _, p := range out[rank] {
			in := &all[p.Rank]
			in.Lock()
			in.bytes[at] = append(in.bytes[at], p.Data...)
			if in.came[at]++; in.came[at] == s.targets {
				in.more.Signal()
			}
			in.Unlock()
		}
		own := &all[rank]
		own.Lock()
		for own.came[at] < s.targets {
			own.more.Wait()
		}
		own.bytes[at], own.came[at] = own.bytes[at][:0], 0
		own.Unlock()
	}
	return newPeerSide(nameLocal, s, step)
}

// newPeerSide is a contender of goroutines that do steps of another kind. With an
// odd number of neighbours nothing bounds how far one is ahead: rounds of one step.
func newPeerSide(name string, s exchangeShape, step func(rank int)) *compare.Contender {
	at := 1
	if s.targets%2 == 0 {
		at = s.batch()
	}
	run := func(_ context.Context, n int) (time.Duration, error) {
		return compare.Timed(func() error {
			for done := 0; done < n; done += at {
				err := together(s.members, func(rank int) error {
					for range min(at, n-done) {
						step(rank)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return &compare.Contender{Name: name, Size: s.size, Batch: s.batch(), Run: run, CPU: compare.SelfCPU}
}

// newChannelSide has a Go channel to each neighbour, with room for one package: a
// copy, in memory that its sender uses by rotation.
func newChannelSide(s exchangeShape) *compare.Contender {
	const slots = 3 // one in the channel, one looked at, one written
	channels := make([]map[int]chan []byte, s.members)
	for rank := range channels {
		channels[rank] = make(map[int]chan []byte)
		targets, _ := s.neighbours(rank)
		for _, to := range targets {
			channels[rank][to] = make(chan []byte, 1)
		}
	}
	out, memory, steps := make([][]group.Package, s.members), make([][slots][]byte, s.members), make([]int, s.members)
	for rank := range out {
		out[rank] = s.packages(rank)
		for i := range memory[rank] {
			memory[rank][i] = make([]byte, s.size*s.targets)
		}
	}
	return newPeerSide(nameChannels, s, func(rank int) {
		room := memory[rank][steps[rank]%slots]
		steps[rank]++
		for i, p := range out[rank] {
			data := room[i*s.size : (i+1)*s.size]
			copy(data, p.Data)
			channels[rank][p.Rank] <- data
		}
		_, sources := s.neighbours(rank)
		for _, from := range sources {
			<-channels[from][rank]
		}
	})
}

// newCopySide copies the bytes of a step and does nothing else: each processor those of
// its members, one after the other in each step, as a step finds them. The same bytes
// several times in a row would come from a cache that does not hold those of a step.
// With read it reads the copies as well, as their receiver would.
func newCopySide(name string, s exchangeShape, read bool) *compare.Contender {
	from, to := make([][]byte, s.members), make([][]byte, s.members)
	for rank := range from { // written to: what never was is read from a page of zeros, which all of it shares
		from[rank] = bytes.Repeat([]byte{byte(rank)}, s.size*s.targets)
		to[rank] = bytes.Repeat([]byte{1}, s.size*s.targets)
	}
	processors := min(runtime.GOMAXPROCS(0), s.members)
	ones := make([]int, s.members)
	run := func(_ context.Context, n int) (time.Duration, error) {
		return compare.Timed(func() error {
			return together(processors, func(first int) error {
				for range n {
					for rank := first; rank < s.members; rank += processors {
						copy(to[rank], from[rank])
						if read {
							ones[rank] += readAll(to[rank])
						}
					}
				}
				return nil
			})
		})
	}
	return &compare.Contender{Name: name, Size: s.size, Batch: s.batch(), Run: run, CPU: compare.SelfCPU}
}
