package links

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/topology"
)

// fabricBench measures one mesh.
type fabricBench struct {
	o *fabricOptions
	m *mesh.Mesh
}

// quietFor is how long nothing came before what is missing counts as lost.
const quietFor = 200 * time.Millisecond

func (b *fabricBench) settle(ctx context.Context, _ *FabricReport) error {
	if err := b.m.Settle(ctx, mesh.Well); err != nil {
		return err
	}
	if b.o.errors == 0 {
		return nil
	}
	for node := range b.m.Nodes() {
		for link := range mesh.Links {
			faults := mesh.Faults{Seed: uint64(node*mesh.Links + link + 1), Flip: b.o.errors}
			if err := b.m.Break(node, link, faults); err != nil && !errors.Is(err, mesh.ErrUnknown) {
				return err // without a link there is nothing to break
			}
		}
	}
	return nil
}

// idle measures the processor of nodes without packets.
func (b *fabricBench) idle(ctx context.Context, r *FabricReport) error {
	if err := pause(ctx, 50*time.Millisecond); err != nil {
		return err
	}
	cpu, begin := cli.CPUTime(), time.Now()
	if err := pause(ctx, 3*b.o.time); err != nil {
		return err
	}
	r.IdleShare = (cli.CPUTime() - cpu).Seconds() / time.Since(begin).Seconds()
	return nil
}

// hops pings the first node at each distance from node 0.
func (b *fabricBench) hops(ctx context.Context, r *FabricReport) error {
	seen := map[int]bool{}
	for to := 1; to < b.m.Nodes(); to++ {
		way, err := b.m.Route(0, to)
		if err != nil {
			return err
		}
		if seen[len(way)] || len(way) == 0 {
			continue
		}
		seen[len(way)] = true
		took, err := b.m.Ping(ctx, 0, to, 56, b.o.pings)
		if err != nil {
			return err
		}
		r.Hops = append(r.Hops, hopsOf(len(way), took))
	}
	slices.SortFunc(r.Hops, func(a, z FabricHops) int { return a.Hops - z.Hops })
	return nil
}

// hopsOf computes the percentiles of half of each round trip; it sorts them.
func hopsOf(hops int, trips []time.Duration) FabricHops {
	slices.Sort(trips)
	at := func(q float64) float64 { return float64(trips[int(q*float64(len(trips)-1))].Nanoseconds()) / 2 }
	return FabricHops{Hops: hops, P50Ns: at(0.5), P99Ns: at(0.99), P9999Ns: at(0.9999)}
}

// sizes sends from node 0 to its first neighbour.
func (b *fabricBench) sizes(ctx context.Context, r *FabricReport) error {
	for _, size := range fabricSizes {
		count := 2000
		for {
			l := mesh.Load{From: 0, To: 1, Size: size, Count: count}
			before, err := b.m.Totals()
			if err != nil {
				return err
			}
			begin := time.Now()
			if err := b.load(ctx, l); err != nil {
				return err
			}
			took := time.Since(begin)
			after, err := b.m.Totals()
			if err != nil {
				return err
			}
			if took < b.o.time/2 && count < 1<<24 {
				count *= 2
				continue
			}
			r.Sizes = append(r.Sizes, sizeOf(size, before, after, took))
			break
		}
	}
	return nil
}

// sizeOf computes the rates of what arrived between two counts.
func sizeOf(size int, before, after mesh.Totals, took time.Duration) FabricSize {
	return FabricSize{
		Size: size, MBs: float64(after.Bytes-before.Bytes) / took.Seconds() / 1e6,
		PacketsPerSec: float64(after.Came-before.Came) / took.Seconds(),
	}
}

// load runs a load to its end.
func (b *fabricBench) load(ctx context.Context, l mesh.Load) error {
	if err := b.m.Start(l); err != nil {
		return err
	}
	return b.m.Wait(ctx, l, quietFor)
}

func (b *fabricBench) all(ctx context.Context, r *FabricReport) error {
	before, err := b.m.Totals()
	if err != nil {
		return err
	}
	begin := time.Now()
	l := mesh.Load{From: mesh.All, To: mesh.All, Size: 1024, Count: max(1, 20000/(b.m.Nodes()*b.m.Nodes()))}
	if err := b.load(ctx, l); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := b.m.Totals()
	if err != nil {
		return err
	}
	r.All = allOf(before, after, took)
	want := uint64(b.m.Nodes() * (b.m.Nodes() - 1) * l.Count)
	if r.All.Packets != want || after.Changed > 0 || after.Doubled > 0 {
		return fmt.Errorf("all to all: %d of %d packets came, %d changed, %d doubled", r.All.Packets, want, after.Changed, after.Doubled)
	}
	return nil
}

// allOf computes what arrived between two counts, and how long first packets of inputs waited.
func allOf(before, after mesh.Totals, took time.Duration) FabricAll {
	return FabricAll{
		Packets: after.Came - before.Came, Seconds: took.Seconds(), MBs: float64(after.Bytes-before.Bytes) / took.Seconds() / 1e6,
		BlockedNs: float64(after.Blocked-before.Blocked) / max(float64(after.Forwarded-before.Forwarded), 1),
	}
}

// firstLink of node 0 leads to another node.
func (b *fabricBench) firstLink() int {
	for link := 0; link < mesh.Links; link++ {
		if b.m.Neighbour(0, link) != 0 {
			return link
		}
	}
	return 0 // a torus has two nodes at least
}

// cut cuts a link of node 0 while its nodes send to each other, and mends it.
func (b *fabricBench) cut(ctx context.Context, r *FabricReport) error {
	link := b.firstLink()
	to := b.m.Neighbour(0, link)
	text, err := b.picture(0, to)
	if err != nil {
		return err
	}
	r.Cut.Before = text
	before, err := b.m.Totals()
	if err != nil {
		return err
	}
	count := 100_000
	if err := b.m.Start(mesh.Load{From: 0, To: to, Size: 1024, Count: count}); err != nil {
		return err
	}
	if r.Cut.ReroutedMs, err = b.change(ctx, link, true); err != nil {
		return err
	}
	if r.Cut.During, err = b.picture(0, to); err != nil {
		return err
	}
	if r.Cut.MendedMs, err = b.change(ctx, link, false); err != nil {
		return err
	}
	if err := b.m.Wait(ctx, mesh.Load{From: 0, To: to, Count: 1}, quietFor); err != nil {
		return err
	}
	after, err := b.m.Totals()
	if err != nil {
		return err
	}
	r.Cut.Sent, r.Cut.Came = after.Sent-before.Sent, after.Came-before.Came
	r.Cut.Lost = r.Cut.Sent - r.Cut.Came
	r.Cut.Changed, r.Cut.Doubled = after.Changed-before.Changed, after.Doubled-before.Doubled
	return nil
}

// change cuts or mends a link of node 0, and returns the milliseconds until all know.
func (b *fabricBench) change(ctx context.Context, link int, cut bool) (float64, error) {
	begin := time.Now()
	if err := b.m.Cut(0, link, cut); err != nil {
		return 0, err
	}
	far := b.m.Neighbour(0, link)
	err := b.m.Settle(ctx, func(_ int, words []abi.Diagnostic) bool {
		return broken(words[0], link) == cut && broken(words[far], link^1) == cut
	})
	return float64(time.Since(begin).Microseconds()) / 1e3, err
}

// picture draws what node 0 knows, and its way to another.
func (b *fabricBench) picture(from, to int) (string, error) {
	words, err := b.m.View(0)
	if err != nil {
		return "", err
	}
	way, err := b.m.Route(from, to)
	if err != nil {
		return "", err
	}
	t := b.o.sides
	s := &topology.Snapshot{Torus: t, Nodes: make([]topology.NodeState, t.Nodes())}
	for i, word := range words {
		s.Nodes[i].Word = word
		state, err := b.m.State(i)
		if err != nil {
			return "", err
		}
		for link, l := range state.Links {
			s.Nodes[i].Links[link] = topology.LinkState{Errors: l.Errors, Repeats: l.Repeated}
		}
	}
	route := topology.Route{From: t.Node(from), To: t.Node(to)}
	for _, h := range way {
		route.Hops = append(route.Hops, topology.Hop{Link: topology.Link(h.Link), Detour: h.Detour})
	}
	s.Routes = []topology.Route{route}
	var text strings.Builder
	err = s.Text(&text)
	return text.String(), err
}
