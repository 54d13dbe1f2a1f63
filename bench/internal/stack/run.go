package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// How chunks follow each other.
const (
	Sync          = "synchronous"
	Overlapped    = "overlapped"     // a future each
	stackTogether = "begun together" // SendStriped, ReceiveStriped
)

// Kinds of memory.
const (
	memoryHeap   = "heap"
	memoryRegion = "region"
	memoryMapped = "mapped"
)

// stackCall is the size whose time is what a call costs.
const stackCall = 8

// Whose calls they are.
const (
	stackGo = "Go"
	stackC  = "C"
)

// stackPath is one leaf of the tree, at all sizes. All leaves move as many chunks through as many
// channels, from and to as much memory, as far as it has room: they differ in how calls follow
// each other, not in what the processor's caches hold.
type stackPath struct {
	mode, memory string
	chans        []*nfcomms.Channel // one for each chunk of a group
	sent, got    []byte             // of the largest chunk, at least
	native       *stackNative       // what moves the chunks, through channels and memory of its own; nil: this process
	points       map[int]*stackTimes
}

// language returns whose calls they are.
func (p *stackPath) language() string {
	if p.native != nil {
		return stackC
	}
	return stackGo
}

// room returns how many chunks of a group have memory of their own.
func (p *stackPath) room(size int) int { return min(len(p.chans), len(p.sent)/size) }

// stackTimes are the tests of a path at one size, by direction: seconds a chunk.
type stackTimes struct {
	wall, cpu [2][]float64
	memcpy    []float64
}

// run is one test of a path: groups of chunks there, then back, until the payload is moved.
func (p *stackPath) run(ctx context.Context, size, payload int, seed uint64) (wall, cpu [2]time.Duration, chunks int, err error) {
	group, used := len(p.chans)*size, p.room(size)*size
	groups := min(4096, (payload+group-1)/group)
	if p.native != nil {
		wall, cpu, groups, err = p.native.move(p.mode, size, groups)
		return wall, cpu, groups * len(p.chans), err
	}
	sent, got := p.sent[:used], p.got[:used]
	for range groups {
		seed++
		compare.FillPattern(sent, seed)
		clear(got)
		for d, move := range []func(context.Context, []byte, int) error{p.send, p.receive} {
			busy, start := cli.CPUTime(), time.Now()
			err = move(ctx, [][]byte{sent, got}[d], size)
			wall[d] += time.Since(start)
			cpu[d] += cli.CPUTime() - busy
			if err != nil {
				return wall, cpu, chunks, err
			}
		}
		chunks += len(p.chans)
		if n := compare.SamePrefix(sent, got); n < used {
			return wall, cpu, chunks, fmt.Errorf("data came back changed: %s, chunks of %s: byte %d differs", p.mode, cli.SizeText(size), n)
		}
	}
	return wall, cpu, chunks, nil
}

// send moves a group to the device.
func (p *stackPath) send(ctx context.Context, mem []byte, size int) error {
	if p.mode == stackTogether {
		return nfcomms.SendStriped(ctx, mem, len(mem), p.chans...)
	}
	return p.each(ctx, mem, size, func(ch *nfcomms.Channel, chunk []byte) error { return ch.SendInd(ctx, chunk) },
		func(ch *nfcomms.Channel, chunk []byte) *nfcomms.Future {
			return nfcomms.SendIndCase(ch, chunk).Start(ctx)
		})
}

// receive moves a group back.
func (p *stackPath) receive(ctx context.Context, mem []byte, size int) error {
	if p.mode == stackTogether {
		_, err := nfcomms.ReceiveStriped(ctx, mem, len(mem), p.chans...)
		return err
	}
	return p.each(ctx, mem, size, func(ch *nfcomms.Channel, chunk []byte) error { _, err := ch.ReceiveInd(ctx, chunk); return err },
		func(ch *nfcomms.Channel, chunk []byte) *nfcomms.Future {
			return nfcomms.ReceiveIndCase(ch, chunk).Start(ctx)
		})
}

// each moves a group chunk by chunk: one after the other, or all at once.
func (p *stackPath) each(ctx context.Context, mem []byte, size int,
	call func(*nfcomms.Channel, []byte) error, begin func(*nfcomms.Channel, []byte) *nfcomms.Future) error {
	chunk := func(i int) []byte { at := i % p.room(size) * size; return mem[at : at+size] }
	if p.mode == Overlapped {
		return all(ctx, len(p.chans), func(i int) *nfcomms.Future { return begin(p.chans[i], chunk(i)) })
	}
	for i, ch := range p.chans {
		if err := call(ch, chunk(i)); err != nil {
			return err
		}
	}
	return nil
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
	if p.native != nil && p.native.missing != "" {
		return nil
	}
	wall, cpu, chunks, err := p.run(ctx, size, payload, seed)
	if err != nil && p.native != nil {
		p.native.fail(err)
		return ctx.Err()
	}
	if err != nil || warmUp {
		return err
	}
	t := p.points[size]
	if t == nil {
		t = new(stackTimes)
		p.points[size] = t
	}
	for d := range compare.Directions {
		t.wall[d] = append(t.wall[d], wall[d].Seconds()/float64(chunks))
		t.cpu[d] = append(t.cpu[d], cpu[d].Seconds()/float64(chunks))
	}
	start := time.Now()
	copy(p.got[:p.room(size)*size], p.sent[:p.room(size)*size])
	t.memcpy = append(t.memcpy, time.Since(start).Seconds()/float64(p.room(size)))
	return nil
}

// stackRig is what the paths share.
type stackRig struct {
	plan      Plan
	chans     []*nfcomms.Channel
	sent, got []byte // of the heap
	native    *stackNative
	overrun   *overrun
	paths     []*stackPath
	gains     []*stackGainTests
	ends      []func() error
}

// path returns a leaf with so many chunks in a group.
func (r *stackRig) path(mode, memory string, depth int, sent, got []byte) *stackPath {
	return &stackPath{mode: mode, memory: memory, chans: r.chans[:depth], sent: sent, got: got, points: map[int]*stackTimes{}}
}

// addNative adds the leaves of the C path, if there are any.
func (r *stackRig) addNative(ctx context.Context, dev *nfcomms.Device) {
	r.native = newStackNative(ctx, dev.Info().Address, r.plan.Depth, r.plan.Depth*r.plan.Sizes[len(r.plan.Sizes)-1])
	r.ends = append(r.ends, r.native.end)
	for _, mode := range []string{Sync, Overlapped} {
		p := r.path(mode, memoryHeap, r.plan.Depth, r.sent, r.got)
		p.native = r.native
		r.paths = append(r.paths, p)
	}
}

// newStackRig starts the loopback processes and finds memory of each kind.
func newStackRig(ctx context.Context, dev *nfcomms.Device, plan Plan) (*stackRig, error) {
	r := &stackRig{plan: plan}
	for range max(plan.Depth, gainDepths[len(gainDepths)-1]) { // a process takes nothing more until what it has was received
		proc, err := compare.Start(ctx, dev, "loopback", 1)
		if err != nil {
			return nil, err
		}
		r.chans = append(r.chans, proc.Chans...)
	}
	most := plan.Sizes[len(plan.Sizes)-1]
	add := func(mode, memory string, sent, got []byte) {
		r.paths = append(r.paths, r.path(mode, memory, plan.Depth, sent, got))
	}
	r.sent, r.got = compare.Buffer(max(plan.Depth*most, gainMemory)), compare.Buffer(max(plan.Depth*most, gainMemory))
	for _, mode := range []string{Sync, Overlapped, stackTogether} {
		add(mode, memoryHeap, r.sent, r.got)
	}
	var regions [2][]byte
	for i := range regions {
		region, err := dev.Alloc(most)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("memory of the device's: %w", err), r.end())
		}
		regions[i] = region.Bytes()
		r.ends = append(r.ends, region.Close)
	}
	add(Sync, memoryRegion, regions[0], regions[1])
	mapped, unmap, err := mapMemory(2 * most)
	if err != nil {
		return nil, errors.Join(err, r.end())
	}
	if mapped != nil {
		r.ends = append(r.ends, unmap)
		add(Sync, memoryMapped, mapped[:most], mapped[most:])
	}
	r.overrun = newOverrun(ctx, dev, plan.Depth)
	r.ends = append(r.ends, r.overrun.end)
	r.addNative(ctx, dev)
	return r, nil
}

// end gives the memory back.
func (r *stackRig) end() (err error) {
	for _, end := range r.ends {
		err = errors.Join(err, end())
	}
	return err
}

// Measure runs all tests, one of every point after the other, and leaves out the first of each.
// The device's processes end with the device.
func Measure(ctx context.Context, dev *nfcomms.Device, plan Plan, bar cli.Progress) (*Report, error) {
	r := &Report{Header: cli.NewHeader("stack", dev), Payload: plan.Payload, Depth: plan.Depth, Tests: plan.Tests}
	touch, err := firstTouch(plan.Sizes[len(plan.Sizes)-1])
	if err != nil {
		return nil, err
	}
	rig, err := newStackRig(ctx, dev, plan)
	if err != nil {
		return nil, err
	}
	w, used := cli.NewWatch(cli.CPUTime()), rig.native.used
	for test := range plan.Tests + 1 {
		for _, size := range append([]int{stackCall}, plan.Sizes...) {
			for _, p := range rig.paths {
				if err := p.measure(ctx, size, plan.Payload, uint64(test)<<20, test == 0); err != nil {
					return nil, errors.Join(err, rig.end())
				}
			}
			bar.Step(cli.SizeText(size))
		}
	}
	bar.Done()
	if err := rig.measureGains(ctx); err != nil {
		return nil, errors.Join(err, rig.end())
	}
	r.Busy = w.Busy(cli.CPUTime()+rig.native.used-used, nil)
	falls, clock, err := rig.waterfalls(ctx, dev)
	if err != nil {
		return nil, errors.Join(err, rig.end())
	}
	r.Waterfalls, r.ClockErrorNS = falls, float64(clock)
	if r.Tracing, err = measureTracing(ctx, dev, plan.Tests); err != nil {
		return nil, errors.Join(err, rig.end())
	}
	r.Goals = r.Tracing.goals()
	if err := r.conclude(ctx, rig, touch); err != nil {
		return nil, errors.Join(err, rig.end())
	}
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
