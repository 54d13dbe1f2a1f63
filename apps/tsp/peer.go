package main

import (
	"context"
	"sync"
	"sync/atomic"
)

// candidate is what a climber gives the manager.
type candidate struct {
	number uint64
	cost   uint64
	tour   []int
}

// inGoroutines is the peer: the same algorithm in goroutines, which share nothing
// but the number of the next ascent and the distances. Same seed, same tour.
func inGoroutines(ctx context.Context, cities []city, s settings) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		next  atomic.Uint64
		group sync.WaitGroup
		found = make(chan candidate)
		space = distances(cities)
	)
	for range s.climbers {
		group.Go(func() {
			for number := next.Add(1) - 1; number < uint64(s.restarts); number = next.Add(1) - 1 {
				select {
				case found <- space.ascend(s.seed, number):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	defer group.Wait()
	defer cancel()
	var best candidate
	for range s.restarts {
		select {
		case c := <-found:
			if best.tour == nil || c.cost < best.cost || c.cost == best.cost && c.number < best.number {
				best = c
			}
		case <-ctx.Done():
			return result{}, context.Cause(ctx)
		}
	}
	r := result{length: best.cost, winner: best.number, climbers: s.climbers}
	for _, i := range best.tour {
		r.tour = append(r.tour, cities[i])
	}
	return r, nil
}

// matrix is the distance between any two cities.
type matrix [][]int32

func distances(cities []city) matrix {
	m := make(matrix, len(cities))
	for i, a := range cities {
		m[i] = make([]int32, len(cities))
		for j, b := range cities {
			m[i][j] = distance(a, b)
		}
	}
	return m
}

// random is splitmix64.
type random uint64

func (r *random) bits() uint64 {
	*r += 0x9e3779b97f4a7c15
	x := uint64(*r)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ascend climbs from a random tour to one that no exchange of two edges shortens.
func (m matrix) ascend(seed, number uint64) candidate {
	n := len(m)
	tour := make([]int, n, n+1)
	for i := range tour {
		tour[i] = i
	}
	r := random(seed + number)
	for i := n - 1; i > 0; i-- {
		j := (r.bits() >> 32) * uint64(i+1) >> 32
		tour[i], tour[j] = tour[j], tour[i]
	}
	tour = append(tour, tour[0]) // it ends where it begins
	edges := make([]int32, n)
	cost := m.measure(tour, edges)
	for m.improve(tour, edges) {
		cost = m.measure(tour, edges)
	}
	return candidate{number, cost, tour[:n]}
}

// measure fills in the edges, each from a city of the tour to the next, and adds them up.
func (m matrix) measure(tour []int, edges []int32) (cost uint64) {
	for i := range edges {
		edges[i] = m[tour[i]][tour[i+1]]
		cost += uint64(edges[i])
	}
	return cost
}

// improve makes the exchange of two edges that saves most, if there is one.
func (m matrix) improve(tour []int, edges []int32) bool {
	n := len(edges)
	var gain int32
	var from, to int
	for i := range n - 2 {
		a, b, end := m[tour[i]], m[tour[i+1]], n
		if i == 0 {
			end-- // edges that meet stay
		}
		after, next := edges[i+2:end], tour[i+2:end+1]
		for k, e := range after {
			if g := edges[i] + e - a[next[k]] - b[next[k+1]]; g > gain {
				gain, from, to = g, i, i+2+k
			}
		}
	}
	for i, j := from+1, to; i < j; i, j = i+1, j-1 {
		tour[i], tour[j] = tour[j], tour[i]
	}
	return gain > 0
}
