package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// How chunks follow each other.
const (
	stackSync       = "synchronous"
	stackOverlapped = "overlapped"
)

// Kinds of memory.
const (
	memoryHeap   = "heap"
	memoryRegion = "region"
	memoryMapped = "mapped"
)

// stackCall is the size whose time is what a call costs.
const stackCall = 8

// stackPath is one leaf of the tree, at all sizes.
type stackPath struct {
	mode, memory string
	depth        int
	chans        []*nfcomms.Channel
	sent, got    []byte // of the largest chunk, depth times
	points       map[int]*stackTimes
}

// stackTimes are the tests of a path at one size, by direction: seconds a chunk.
type stackTimes struct {
	wall, cpu [2][]float64
	memcpy    []float64
}

// run is one test of a path: groups of depth chunks there, then back, until the payload is
// moved.
func (p *stackPath) run(ctx context.Context, size, payload int, seed uint64) (wall, cpu [2]time.Duration, chunks int, err error) {
	group := p.depth * size
	sent, got := p.sent[:group], p.got[:group]
	for moved := 0; moved < payload && moved < 4096*group; moved += group {
		seed++
		fillPattern(sent, seed)
		clear(got)
		for d, begin := range []func(int) *nfcomms.Future{
			func(i int) *nfcomms.Future { return p.chans[i].SendIndAsync(ctx, sent[i*size:(i+1)*size]) },
			func(i int) *nfcomms.Future { return p.chans[i].ReceiveIndAsync(ctx, got[i*size:(i+1)*size]) },
		} {
			busy, start := cpuTime(), time.Now()
			if p.depth == 1 {
				err = p.blocking(ctx, d, sent, got)
			} else {
				err = all(ctx, p.depth, begin)
			}
			wall[d] += time.Since(start)
			cpu[d] += cpuTime() - busy
			if err != nil {
				return wall, cpu, chunks, err
			}
		}
		chunks += p.depth
		if n := samePrefix(sent, got); n < group {
			return wall, cpu, chunks, fmt.Errorf("data came back changed: %s, chunks of %s: byte %d differs", p.mode, sizeText(size), n)
		}
	}
	return wall, cpu, chunks, nil
}

// blocking is one chunk in one direction.
func (p *stackPath) blocking(ctx context.Context, direction int, sent, got []byte) error {
	if direction == 0 {
		return p.chans[0].SendInd(ctx, sent)
	}
	_, err := p.chans[0].ReceiveInd(ctx, got)
	return err
}

// all starts n futures and waits for all, also after one that failed.
func all(ctx context.Context, n int, begin func(int) *nfcomms.Future) (err error) {
	futures := make([]*nfcomms.Future, n)
	for i := range futures {
		futures[i] = begin(i)
	}
	for _, f := range futures {
		if _, e := f.Wait(context.WithoutCancel(ctx)); err == nil {
			err = e
		}
	}
	return err
}

// measure adds one test of a path at a size; a warm-up is forgotten.
func (p *stackPath) measure(ctx context.Context, size, payload int, seed uint64, warmUp bool) error {
	wall, cpu, chunks, err := p.run(ctx, size, payload, seed)
	if err != nil || warmUp {
		return err
	}
	t := p.points[size]
	if t == nil {
		t = new(stackTimes)
		p.points[size] = t
	}
	for d := range directions {
		t.wall[d] = append(t.wall[d], wall[d].Seconds()/float64(chunks))
		t.cpu[d] = append(t.cpu[d], cpu[d].Seconds()/float64(chunks))
	}
	start := time.Now()
	copy(p.got[:p.depth*size], p.sent[:p.depth*size])
	t.memcpy = append(t.memcpy, time.Since(start).Seconds()/float64(p.depth))
	return nil
}

// stackRig is what the paths share.
type stackRig struct {
	plan  stackPlan
	paths []*stackPath
	ends  []func() error
}

// newStackRig starts the loopback processes and finds memory of each kind.
func newStackRig(ctx context.Context, dev *nfcomms.Device, plan stackPlan) (*stackRig, error) {
	r := &stackRig{plan: plan}
	var chans []*nfcomms.Channel
	for range plan.depth { // a process takes nothing more until what it has was received
		proc, err := start(ctx, dev, "loopback", 1)
		if err != nil {
			return nil, err
		}
		chans = append(chans, proc.chans...)
	}
	most := plan.sizes[len(plan.sizes)-1]
	add := func(mode, memory string, depth int, sent, got []byte) {
		r.paths = append(r.paths, &stackPath{mode, memory, depth, chans, sent, got, map[int]*stackTimes{}})
	}
	sent, got := buffer(plan.depth*most), buffer(plan.depth*most)
	add(stackSync, memoryHeap, 1, sent, got)
	add(stackOverlapped, memoryHeap, plan.depth, sent, got)
	var regions [2][]byte
	for i := range regions {
		region, err := dev.Alloc(most)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("memory of the device's: %w", err), r.end())
		}
		regions[i] = region.Bytes()
		r.ends = append(r.ends, region.Close)
	}
	add(stackSync, memoryRegion, 1, regions[0], regions[1])
	mapped, unmap, err := mapMemory(2 * most)
	if err != nil {
		return nil, errors.Join(err, r.end())
	}
	if mapped != nil {
		r.ends = append(r.ends, unmap)
		add(stackSync, memoryMapped, 1, mapped[:most], mapped[most:])
	}
	return r, nil
}

// end gives the memory back.
func (r *stackRig) end() (err error) {
	for _, end := range r.ends {
		err = errors.Join(err, end())
	}
	return err
}

// stack runs all tests, one of every point after the other, and leaves out the first of each.
// The device's processes end with the device.
func stack(ctx context.Context, dev *nfcomms.Device, plan stackPlan, bar progress) (*StackReport, error) {
	r := &StackReport{Header: newHeader("stack", dev), Payload: plan.payload, Depth: plan.depth, Tests: plan.tests}
	touch, err := firstTouch(plan.sizes[len(plan.sizes)-1])
	if err != nil {
		return nil, err
	}
	rig, err := newStackRig(ctx, dev, plan)
	if err != nil {
		return nil, err
	}
	w := newWatch(cpuTime())
	for test := range plan.tests + 1 {
		for _, size := range append([]int{stackCall}, plan.sizes...) {
			for _, p := range rig.paths {
				if err := p.measure(ctx, size, plan.payload, uint64(test)<<20, test == 0); err != nil {
					return nil, errors.Join(err, rig.end())
				}
			}
			bar.step(sizeText(size))
		}
	}
	bar.done()
	r.Busy = w.busy(cpuTime(), nil)
	falls, clock, err := rig.waterfalls(ctx, dev)
	if err != nil {
		return nil, errors.Join(err, rig.end())
	}
	r.Waterfalls, r.ClockErrorNS = falls, float64(clock)
	r.conclude(rig, touch)
	return r, rig.end()
}

// firstTouch returns what a page costs that nobody has written to before; 0 where memory
// cannot be mapped.
func firstTouch(size int) (seconds float64, err error) {
	mem, unmap, err := mapMemory(size)
	if err != nil || mem == nil {
		return 0, err
	}
	start := time.Now()
	pages := 0
	for i := 0; i < len(mem); i += 4096 {
		mem[i] = 1
		pages++
	}
	return time.Since(start).Seconds() / float64(pages), unmap()
}
