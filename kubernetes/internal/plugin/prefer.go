package plugin

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/internal/topology"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// farAway is the distance of devices of two NUMA nodes, more than a fabric has hops.
const farAway = 1 << 20

// placed is a device and its place on the machine and in its fabric.
type placed struct {
	id    string
	numa  int64 // -1: unknown
	torus topology.Torus
	node  topology.Node
	known bool // torus and node are
}

// distance is how far two devices are from each other: hops of their fabric, and more than all hops
// between NUMA nodes.
func (a *placed) distance(b *placed) (d int) {
	if a.numa != b.numa {
		d = farAway
	}
	if a.known && b.known && a.torus == b.torus {
		return d + hops(a.torus, a.node, b.node)
	}
	return d
}

// hops counts the links of a shortest way between two nodes of a torus.
func hops(t topology.Torus, a, b topology.Node) int {
	one := func(n, from, to int) int {
		d := max(from-to, to-from)
		return min(d, n-d)
	}
	return one(t.X, int(a.X()), int(b.X())) + one(t.Y, int(a.Y()), int(b.Y())) + one(t.Z, int(a.Z()), int(b.Z()))
}

// near picks devices whose distances to each other add up to little: from each that it may begin
// with, it adds the nearest until there are enough. Of equal picks it takes that of the NUMA node
// with the fewest devices, which keeps large groups whole, and then the first.
func near(all []placed, must []string, size int) []string {
	group := make(map[int64]int)
	for _, p := range all {
		group[p.numa]++
	}
	var best []placed
	least, fewest := 0, 0
	for _, first := range all {
		picked := slices.DeleteFunc(slices.Clone(all), func(p placed) bool { return !slices.Contains(must, p.id) })
		if len(picked) == 0 && size > 0 {
			picked = []placed{first}
		}
		cost := grow(&picked, all, size)
		if n := group[first.numa]; best == nil || cost < least || cost == least && n < fewest {
			best, least, fewest = picked, cost, n
		}
	}
	ids := make([]string, len(best))
	for i, p := range best {
		ids[i] = p.id
	}
	slices.Sort(ids)
	return ids
}

// grow adds the nearest devices until there are enough, and returns the sum of all distances.
func grow(picked *[]placed, all []placed, size int) (cost int) {
	for len(*picked) < size {
		next, least := -1, 0
		for i := range all {
			if slices.ContainsFunc(*picked, func(p placed) bool { return p.id == all[i].id }) {
				continue
			}
			if d := sum(*picked, &all[i]); next < 0 || d < least {
				next, least = i, d
			}
		}
		*picked = append(*picked, all[next])
	}
	for i := range *picked {
		cost += sum((*picked)[:i], &(*picked)[i])
	}
	return cost
}

func sum(from []placed, to *placed) (d int) {
	for i := range from {
		d += to.distance(&from[i])
	}
	return d
}

// spread picks shares: of another device each while there is one, and of those with the most left.
func spread(available, must []string, size int) []string {
	left, used := make(map[string][]string), make(map[string]int)
	for _, id := range available {
		if slices.Contains(must, id) {
			used[deviceOf(id)]++
			continue
		}
		left[deviceOf(id)] = append(left[deviceOf(id)], id)
	}
	ids := slices.Clone(must)
	for len(ids) < size && len(left) > 0 {
		name := slices.MinFunc(slices.Sorted(maps.Keys(left)), func(a, b string) int {
			return cmp.Or(cmp.Compare(used[a], used[b]), cmp.Compare(len(left[b]), len(left[a])))
		})
		ids = append(ids, left[name][0])
		used[name]++
		if left[name] = left[name][1:]; len(left[name]) == 0 {
			delete(left, name)
		}
	}
	return ids
}

// places remembers where devices are in their fabrics.
type places struct {
	client *control.Client
	mu     sync.Mutex
	asked  map[string]place // by name
}

// place is what a device said in an epoch.
type place struct {
	epoch uint32
	torus topology.Torus
	node  topology.Node
	known bool
}

// placesTime bounds the questions of one pick: pods wait for it.
const placesTime = time.Second

// of returns where devices are. One that does not say it in time has no place in a fabric.
func (p *places) of(ctx context.Context, offers []*offer) []placed {
	ctx, cancel := context.WithTimeout(ctx, placesTime)
	defer cancel()
	list := make([]placed, len(offers))
	for i, o := range offers {
		at := p.ask(ctx, o)
		list[i] = placed{id: o.name, numa: o.numa, torus: at.torus, node: at.node, known: at.known}
	}
	return list
}

// ask asks a device once in each of its epochs.
func (p *places) ask(ctx context.Context, o *offer) place {
	p.mu.Lock()
	at, asked := p.asked[o.name]
	p.mu.Unlock()
	if asked && at.epoch == o.epoch {
		return at
	}
	at = place{epoch: o.epoch}
	f, err := p.client.Fabrics.GetFabric(ctx, &nfcommsv1.GetFabricRequest{Name: control.DeviceName(o.name)})
	if ctx.Err() != nil {
		return at // asked again next time
	}
	if err == nil {
		at.torus, err = topology.ParseTorus(f.GetTorus())
	}
	if err == nil {
		at.node, err = topology.ParseNode(f.GetNode())
	}
	at.known = err == nil
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[o.name] = at
	return at
}
