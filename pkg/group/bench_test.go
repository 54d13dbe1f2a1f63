//go:build unix

package group

import (
	"fmt"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
)

// BenchmarkExchange: 8 members, 64 bytes each to 4 others.
func BenchmarkExchange(b *testing.B) {
	for _, c := range []struct{ members, to, size int }{{8, 4, 64}, {8, 4, 64 << 10}, {64, 4, 64}} {
		for _, transport := range []string{"mesh", "rings"} {
			if c.members > 8 && transport == "rings" {
				continue
			}
			for _, a := range Algorithms() {
				if a.Process {
					continue
				}
				b.Run(fmt.Sprintf("%dx%dx%d/%s/%s", c.members, c.to, c.size, transport, a.Name), func(b *testing.B) {
					b.ReportAllocs()
					defer cpu(b)()
					connect := transports[transport](b, c.members)
					var all errgroup.Group
					for rank := range c.members {
						all.Go(func() error {
							o := Options{Rank: rank, Size: c.members, Algorithm: a.Name}
							var out []Package
							for i := range c.to {
								o.Targets = append(o.Targets, neighbour(rank, i, c.members))
								out = append(out, Package{neighbour(rank, i, c.members), make([]byte, c.size)})
							}
							o.Sources = o.Targets
							g, err := Join(b.Context(), connect(rank), o)
							if err != nil {
								return err
							}
							defer g.Close()
							for range b.N {
								if _, err := g.Exchange(b.Context(), out); err != nil {
									return err
								}
							}
							return nil
						})
					}
					if err := all.Wait(); err != nil {
						b.Fatal(err)
					}
				})
			}
		}
		b.Run(fmt.Sprintf("%dx%dx%d/local", c.members, c.to, c.size), func(b *testing.B) {
			defer cpu(b)()
			benchLocal(b, c.members, c.to, c.size)
		})
	}
}

// cpu reports the processor time of an operation, which others hardly change.
func cpu(b *testing.B) func() {
	used := func() (t syscall.Rusage) {
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &t) // 0 where it is unknown
		return t
	}
	from := used()
	return func() {
		to := used()
		ns := to.Utime.Nano() + to.Stime.Nano() - from.Utime.Nano() - from.Stime.Nano()
		b.ReportMetric(float64(ns)/float64(b.N), "cpu-ns/op")
	}
}

// benchLocal is the best that goroutines do without a group: a mutex and a slice
// each.
func benchLocal(b *testing.B, members, to, size int) {
	type inbox struct {
		sync.Mutex
		more sync.Cond
		in   [2][]byte // by parity of the step
		n    [2]int
	}
	inboxes := make([]inbox, members)
	for i := range inboxes {
		inboxes[i].more.L = &inboxes[i].Mutex
	}
	var all sync.WaitGroup
	for rank := range members {
		all.Go(func() {
			data := make([]byte, size)
			own := &inboxes[rank]
			for step := range b.N {
				for i := range to {
					in := &inboxes[neighbour(rank, i, members)]
					in.Lock()
					in.in[step%2] = append(in.in[step%2], data...)
					if in.n[step%2]++; in.n[step%2] == to {
						in.more.Signal()
					}
					in.Unlock()
				}
				own.Lock()
				for own.n[step%2] < to {
					own.more.Wait()
				}
				own.in[step%2], own.n[step%2] = own.in[step%2][:0], 0
				own.Unlock()
			}
		})
	}
	all.Wait()
}

// neighbour is the i-th of a member: one to the right, one to the left, two to
// the right …
func neighbour(rank, i, members int) int {
	d := i/2 + 1
	if i%2 == 1 {
		d = members - d
	}
	return (rank + d) % members
}
