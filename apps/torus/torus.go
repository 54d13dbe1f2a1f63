package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/model"
	"github.com/nfcomms/nfcomms/internal/topology"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

const (
	transfer = 1 << 20 // bytes
	stage    = 1500 * time.Millisecond
)

// near and far are node 0 and node 15 of the torus.
var near, far = abi.MakeNode(0, 0, 0), abi.MakeNode(3, 3, 0)

// oneProcess moves bulk data over four by four nodes of this process.
func oneProcess(ctx context.Context) error {
	fmt.Println("== 16 nodes in one process, sim:?torus=4x4x1: transfers of 1 MiB from 0.0.0 to 3.3.0 and back, compared ==")
	dev, err := nfcomms.Open(ctx, "sim:?torus=4x4x1")
	if err != nil {
		return err
	}
	defer dev.Close()
	f := fabric.Of(dev)
	if err := untilBroken(ctx, f, 0); err != nil {
		return err
	}
	ch, err := dev.Subscribe(ctx, fabric.Target(far, nfcomms.Loopback))
	if err != nil {
		return err
	}
	defer ch.Close()
	l := newLoad(ctx, ch)
	defer l.stop()
	way, err := f.Route(ctx, near, far)
	if err != nil || len(way) == 0 {
		return fmt.Errorf("no way to 3.3.0: %w", err)
	}
	if err := l.show(ctx, "before", f, false); err != nil {
		return err
	}
	link := topology.Link(way[0].Link)
	if err := cutUnderLoad(ctx, f, l, link); err != nil {
		return err
	}
	if err := f.CutLink(ctx, near, int(link), false); err != nil {
		return err
	}
	if err := untilBroken(ctx, f, 0); err != nil {
		return err
	}
	if err := l.show(ctx, "mended", f, false); err != nil {
		return err
	}
	if err := l.stop(); err != nil {
		return err
	}
	return testLink(ctx, f, link)
}

// cutUnderLoad cuts the first link of the way, and shows the way around it.
func cutUnderLoad(ctx context.Context, f fabric.Fabric, l *load, link topology.Link) error {
	begin := time.Now()
	if err := f.CutLink(ctx, near, int(link), true); err != nil {
		return err
	}
	err := until(ctx, "the way leads around the cut", func() (bool, error) {
		way, err := f.Route(ctx, near, far)
		return len(way) > 0 && way[0].Link != int(link), err
	})
	if err != nil {
		return err
	}
	fmt.Printf("\nlink %v of %v cut under load: the way led around it after %.1f ms\n", link, near, float64(time.Since(begin).Microseconds())/1e3)
	if err := untilBroken(ctx, f, 1); err != nil {
		return err
	}
	return l.show(ctx, "with the link cut", f, true)
}

// untilBroken waits until so many links are known to be broken, and all others well.
func untilBroken(ctx context.Context, f fabric.Fabric, want int) error {
	return until(ctx, fmt.Sprintf("%d links are broken", want), func() (bool, error) {
		s, err := f.State(ctx)
		if err != nil {
			return false, err
		}
		_, links := topology.Of(&s).Count()
		return links[topology.Broken] == want && links[topology.Unknown] == 0, nil
	})
}

// testLink shows the error ratio of a link.
func testLink(ctx context.Context, f fabric.Fabric, link topology.Link) error {
	within, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	t, err := f.TestLink(within, near, int(link), 1<<32)
	if err != nil && within.Err() == nil {
		return err
	}
	bits := 128 * float64(t.Words)
	fmt.Printf("\nself-test of link %v of %v: %d words, %d wrong: bit error ratio below %.2g at a confidence of 95 %%\n\n",
		link, near, t.Words, t.Wrong, model.ErrorBound(int(t.Wrong), bits, 0.95))
	if t.Wrong > 0 {
		return fmt.Errorf("a wire in memory changed %d words", t.Wrong)
	}
	return nil
}

// load is transfers there and back, one after the other, until it is stopped.
type load struct {
	end     context.CancelFunc
	done    chan struct{}
	trips   chan trip
	failure error // valid once done is closed
}

// trip is one transfer there and back.
type trip struct{ begin, end time.Time }

func newLoad(ctx context.Context, ch *nfcomms.Channel) *load {
	ctx, end := context.WithCancel(ctx)
	l := &load{end: end, done: make(chan struct{}), trips: make(chan trip, 1<<16)} // more than a demo has
	go func() {
		defer close(l.done)
		l.failure = l.run(ctx, ch)
	}()
	return l
}

// run ends with its context, or with the first failure.
func (l *load) run(ctx context.Context, ch *nfcomms.Channel) error {
	data, back := make([]byte, transfer), make([]byte, transfer)
	random := rand.NewChaCha8([32]byte{15})
	for ctx.Err() == nil {
		_, _ = random.Read(data) // never fails
		begin := time.Now()
		if err := ch.SendInd(ctx, data); err != nil {
			return ignoreEnd(ctx, err)
		}
		if _, err := ch.ReceiveInd(ctx, back); err != nil {
			return ignoreEnd(ctx, err)
		}
		if !bytes.Equal(data, back) {
			return fmt.Errorf("a transfer came back changed")
		}
		select {
		case l.trips <- trip{begin, time.Now()}:
		default:
		}
	}
	return nil
}

// ignoreEnd leaves out what stopping a load says.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stop ends the load. It is idempotent.
func (l *load) stop() error {
	l.end()
	<-l.done
	return l.failure
}

// show lets the load run for a stage, and prints the map with its figures.
func (l *load) show(ctx context.Context, title string, f fabric.Fabric, detour bool) error {
	before, err := f.State(ctx)
	if err != nil {
		return err
	}
	took, err := l.measure(title)
	if err != nil {
		return err
	}
	return draw(ctx, f, &before, took, detour)
}

// measure lets the load run for a stage, prints its figures, and returns how long it was.
func (l *load) measure(title string) (seconds float64, err error) {
	begin := time.Now()
	select {
	case <-l.done:
		return 0, fmt.Errorf("%s: %w", title, l.failure)
	case <-time.After(stage):
	}
	took := time.Since(begin).Seconds()
	n, longest := 0, time.Duration(0)
	for len(l.trips) > 0 {
		t := <-l.trips
		n++
		longest = max(longest, t.end.Sub(t.begin))
	}
	if n == 0 {
		return 0, fmt.Errorf("%s: nothing came back in %v", title, stage)
	}
	fmt.Printf("\n%s, simulated devices: %d transfers there and back, %.0f MB/s each way, the longest took %.1f ms\n",
		title, n, float64(n)*transfer/took/1e6, float64(longest.Microseconds())/1e3)
	return took, nil
}

// draw prints the map with rates since a state before, and the way to the far node.
func draw(ctx context.Context, f fabric.Fabric, before *fabric.State, seconds float64, detour bool) error {
	now, err := f.State(ctx)
	if err != nil {
		return err
	}
	s := topology.Of(&now)
	for i := range s.Nodes {
		for l := range s.Nodes[i].Links {
			grown := now.Nodes[i].Links[l].BytesSent - before.Nodes[i].Links[l].BytesSent
			s.Nodes[i].Links[l].BytesPerSecond = float64(grown) / seconds
		}
	}
	way, err := f.Route(ctx, near, far)
	if err != nil {
		return err
	}
	route := topology.Route{From: near, To: far}
	detours := false
	for _, h := range way {
		detours = detours || h.Detour
		route.Hops = append(route.Hops, topology.Hop{Link: topology.Link(h.Link), Detour: h.Detour})
	}
	if detours != detour {
		return fmt.Errorf("the way to %v is %v", far, route)
	}
	s.Routes = []topology.Route{route}
	return s.Text(os.Stdout)
}
