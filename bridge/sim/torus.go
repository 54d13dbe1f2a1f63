//go:build cgo

package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/logqueue"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/bridge/mesh"
	"github.com/nfcomms/nfcomms/firmware"
)

// torus is the fabric of which the device is node 0.0.0.
type torus struct {
	mesh *mesh.Mesh
	side [3]int
	o    options
	info bridge.Info
	log  *logqueue.Queue // of the device; closed with that

	opening sync.Mutex // guards what follows; held while one is opened
	far     map[int]*farNode
	closed  bool

	ending sync.Once
	result error // of end
}

// farNode is another node: the device that runs there, and how this process reaches it.
type farNode struct {
	firmware *firmware.Instance
	log      *logPipe
	near     *firmware.Near
	dev      *farDevice    // nil until it answered, and when it was closed
	leaving  chan struct{} // while one is closed; nil else
}

// farDevice is the device of another node; one that was closed is opened anew when it is
// asked for again.
type farDevice struct {
	bridge.Device
	torus *torus
	index int
}

// Close closes what this process has at the node. Calls of it may be waited for, and
// they may open nodes: no lock is held meanwhile.
func (d *farDevice) Close() error {
	d.torus.opening.Lock()
	far := d.torus.far[d.index]
	mine := far.dev == d
	if mine {
		far.dev, far.leaving = nil, make(chan struct{})
	}
	d.torus.opening.Unlock()
	err := d.Device.Close()
	if mine {
		d.torus.opening.Lock()
		close(far.leaving)
		far.leaving = nil
		d.torus.opening.Unlock()
	}
	return err
}

// newTorus starts the nodes of a torus.
func newTorus(o options, info bridge.Info, log *logqueue.Queue) (*torus, error) {
	m, err := mesh.Open(mesh.Config{Side: o.torus, Threads: meshThreads(), Spin: o.shape.Spin})
	if err != nil {
		return nil, err
	}
	if err := breakLinks(m, o.errors); err != nil {
		m.Close()
		return nil, err
	}
	o.shape.Shared = 1 // the host at node 0.0.0
	return &torus{mesh: m, side: o.torus, o: o, info: info, log: log, far: make(map[int]*farNode)}, nil
}

// breakLinks has each link flip, lose, double and delay words.
func breakLinks(m *mesh.Mesh, part float64) error {
	if part == 0 {
		return nil
	}
	for i := range m.Nodes() * mesh.Links {
		f := mesh.Faults{Seed: uint64(i) + 1, Flip: part, Drop: part, Repeat: part, Stall: part, StallFor: 10 * time.Microsecond}
		if err := m.Break(i/mesh.Links, i%mesh.Links, f); err != nil && !errors.Is(err, mesh.ErrUnknown) {
			return err // where no link is there is nothing to break
		}
	}
	return nil
}

// meshThreads leaves a processor to the host.
func meshThreads() int { return max(1, min(runtime.NumCPU()/2, 4)) }

// index numbers nodes, x first.
func (t *torus) index(n abi.Node) (int, error) {
	if int(n.X()) >= t.side[0] || int(n.Y()) >= t.side[1] || int(n.Z()) >= t.side[2] {
		return 0, fmt.Errorf("node %v: %w: not in a torus of %dx%dx%d", n, bridge.ErrInvalid, t.side[0], t.side[1], t.side[2])
	}
	return int(n.X()) + t.side[0]*(int(n.Y())+t.side[1]*int(n.Z())), nil
}

// State describes all nodes.
func (t *torus) State() (bridge.FabricState, error) {
	s, err := t.mesh.FabricState(0)
	return s, meshError(err)
}

// Route returns the way between two nodes.
func (t *torus) Route(from, to abi.Node) ([]bridge.FabricHop, error) {
	a, err := t.index(from)
	if err != nil {
		return nil, err
	}
	b, err := t.index(to)
	if err != nil {
		return nil, err
	}
	route, err := t.mesh.Route(a, b)
	hops := make([]bridge.FabricHop, 0, len(route))
	for _, h := range route {
		hops = append(hops, bridge.FabricHop(h))
	}
	if len(hops) == 0 && a != b {
		hops = nil
	}
	return hops, meshError(err)
}

// CutLink cuts a link or mends it.
func (t *torus) CutLink(node abi.Node, link int, cut bool) error {
	i, err := t.index(node)
	if err != nil {
		return err
	}
	return meshError(t.mesh.Cut(i, link, cut))
}

// KillNode ends a node or starts it anew.
func (t *torus) KillNode(node abi.Node, dead bool) error {
	i, err := t.index(node)
	if err != nil {
		return err
	}
	return meshError(t.mesh.Kill(i, dead, false))
}

// TestLink sends words that the other end checks.
func (t *torus) TestLink(ctx context.Context, node abi.Node, link int, words uint64) (bridge.LinkTest, error) {
	i, err := t.index(node)
	if err != nil {
		return bridge.LinkTest{}, err
	}
	result, err := t.mesh.Test(ctx, i, link, words)
	return bridge.LinkTest(result), meshError(err)
}

// meshError says in the words of the bridge what a mesh says.
func meshError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mesh.ErrClosed):
		return errClosed
	case errors.Is(err, mesh.ErrUnknown):
		return fmt.Errorf("%w: %w", bridge.ErrInvalid, err)
	}
	return err
}

// errClosed is what the fabric of a closed device answers.
var errClosed = fmt.Errorf("device %w", bridge.ErrClosed)

// Device returns the device of another node, which is opened when it is first asked for
// and closed with the fabric.
func (t *torus) Device(ctx context.Context, n abi.Node) (bridge.Device, error) {
	i, err := t.index(n)
	if err != nil {
		return nil, err
	}
	if i == 0 {
		return nil, fmt.Errorf("node %v: %w: it is the device that was opened", n, bridge.ErrInvalid)
	}
	if err := t.enter(ctx, i); err != nil {
		return nil, err
	}
	defer t.opening.Unlock()
	far := t.far[i]
	if far == nil {
		if far, err = t.boot(i); err != nil {
			return nil, err
		}
		t.far[i] = far
	}
	if far.dev != nil {
		return far.dev, nil
	}
	p, err := newFarPort(far.near, far.firmware, func() bool { return t.reaches(i) })
	if err != nil {
		return nil, err
	}
	info := t.info
	info.Node = n
	dev, err := mailbox.Open(ctx, p, info, &mailbox.Options{Log: t.log, Stall: t.o.stall})
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	far.dev = &farDevice{dev, t, i}
	return far.dev, nil
}

// enter locks opening when nobody leaves that node.
func (t *torus) enter(ctx context.Context, i int) error {
	for {
		t.opening.Lock()
		far := t.far[i]
		switch {
		case t.closed:
			t.opening.Unlock()
			return errClosed
		case far == nil || far.leaving == nil:
			return nil
		}
		leaving := far.leaving
		t.opening.Unlock()
		select {
		case <-leaving:
		case <-ctx.Done():
			return &bridge.WithdrawnError{Cause: ctx.Err()}
		}
	}
}

// stop ends the device of a node, which serves nobody any more.
func (n *farNode) stop(log *logqueue.Queue) error {
	left := n.firmware.Close()
	n.log.Close()
	if left == nil {
		return nil
	}
	report(log, "device closed beside a process that computes", left)
	return computing(left, bridge.ErrBusy)
}

// boot starts the device of a node.
func (t *torus) boot(i int) (*farNode, error) {
	log, err := newLogPipe(t.log)
	if err != nil {
		return nil, err
	}
	shape := t.o.shape
	shape.LogFD = log.writeFD()
	instance, status := firmware.Start(shape)
	log.handOver()
	if status != abi.OK {
		log.Close()
		return nil, fmt.Errorf("start firmware: %w", bridge.Error(status))
	}
	if err := t.mesh.SetDevice(i, instance, shape); err != nil {
		instance.Close()
		log.Close()
		return nil, meshError(err)
	}
	near, err := t.mesh.Near(0, i, shape, nil, 0)
	if err != nil {
		_ = t.mesh.EndDevice(i)
		instance.Close()
		log.Close()
		return nil, meshError(err)
	}
	return &farNode{firmware: instance, log: log, near: near}, nil
}

// reaches reports whether there is a way to a node.
func (t *torus) reaches(i int) bool {
	hops, err := t.mesh.Route(0, i)
	return err == nil && len(hops) > 0
}

// opened lists the devices of other nodes that are open.
func (t *torus) opened() (all []*farDevice) {
	t.opening.Lock()
	defer t.opening.Unlock()
	for _, far := range t.far {
		if far.dev != nil {
			all = append(all, far.dev)
		}
	}
	return all
}

// close ends all nodes. It is idempotent.
func (t *torus) close() error {
	t.opening.Lock()
	t.closed = true // nobody comes any more
	t.opening.Unlock()
	t.ending.Do(func() { t.result = t.end() })
	return t.result
}

func (t *torus) end() error {
	var errs []error
	for _, dev := range t.opened() {
		errs = append(errs, dev.Close())
	}
	for i, far := range t.far {
		t.opening.Lock()
		leaving := far.leaving
		t.opening.Unlock()
		if leaving != nil {
			<-leaving
		}
		_ = t.mesh.EndDevice(i)
		errs = append(errs, far.stop(t.log))
	}
	t.mesh.Close()
	return errors.Join(errs...)
}

// node is a device that is node 0.0.0 of a torus.
type node struct {
	bridge.Device
	torus *torus
}

var _ bridge.FabricNode = (*node)(nil)

// Fabric returns the torus.
func (n *node) Fabric() bridge.Fabric { return n.torus }

// Subscribe opens the channel to a target of any node.
func (n *node) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	place, there := t.Node()
	if !there || !abi.ID(t).Valid() {
		return n.Device.Subscribe(ctx, t)
	}
	if err := ctx.Err(); err != nil {
		return nil, &bridge.WithdrawnError{Cause: err}
	}
	dev, local := n.Device, bridge.Target(abi.ID(t).Target())
	if place != 0 {
		far, err := n.torus.Device(ctx, place)
		if errors.Is(err, bridge.ErrInvalid) {
			err = fmt.Errorf("%w: %w", bridge.ErrNotSubscribed, err)
		}
		if err != nil {
			return nil, err
		}
		dev = far
	}
	ch, err := dev.Subscribe(ctx, local)
	if err != nil {
		return nil, err
	}
	return &remote{ch.(bridge.Beginner), t}, nil
}

// remote is a channel of a mailbox that names its node.
type remote struct {
	bridge.Beginner
	target bridge.Target
}

// Target returns the id that was subscribed.
func (c *remote) Target() bridge.Target { return c.target }

// Reset resets the device, and what this process has at other nodes. Nodes that do not
// answer stay lost.
func (n *node) Reset(ctx context.Context) error {
	err := n.Device.Reset(ctx)
	if err != nil {
		return err
	}
	for _, far := range n.torus.opened() {
		_ = far.Reset(ctx)
	}
	return nil
}

// Close closes the device, then ends the other nodes.
func (n *node) Close() error { return errors.Join(n.torus.close(), n.Device.Close()) }
