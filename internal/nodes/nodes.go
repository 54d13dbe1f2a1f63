package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Torus is a fabric as a back end reaches it. Its methods that [bridge.Fabric] has as well are as
// there. Those without a context are short, or are bounded by the back end.
type Torus interface {
	// State returns the view of the own node.
	State() (bridge.FabricState, error)
	// Route returns the way between two nodes.
	Route(from, to abi.Node) ([]bridge.FabricHop, error)
	// CutLink cuts a link, or mends it.
	CutLink(node abi.Node, link int, cut bool) error
	// KillNode ends a node, or starts it anew.
	KillNode(node abi.Node, dead bool) error
	// SilenceNode ends a node whose links do not hang up.
	SilenceNode(node abi.Node) error
	// TestLink tests a link.
	TestLink(ctx context.Context, node abi.Node, link int, words uint64) (bridge.LinkTest, error)
	// Put writes to a window of a node.
	Put(ctx context.Context, to bridge.FabricWindow, offset uint64, data []byte) error
	// Get reads from one.
	Get(ctx context.Context, from bridge.FabricWindow, offset uint64, buf []byte) error
	// Window makes memory of this process a window of the own node. Regions are not its
	// concern, nor is how many there are.
	Window(ctx context.Context, mem []byte, access bridge.WindowAccess) (bridge.HostWindow, error)
	// Open opens the device of a node, which is not the own one, and not open. One call at a
	// time is made.
	Open(ctx context.Context, n abi.Node) (bridge.Device, error)
	// A Torus that has Leave is notified before it closes: no call is to wait long for an answer any more.

	// End ends the fabric once all devices of other nodes are closed; no call follows.
	End() error
}

// errClosed is what the fabric of a closed device answers.
var errClosed = fmt.Errorf("device %w", bridge.ErrClosed)

// Join makes a device the node of a fabric that its Info names. Close of what it returns
// closes all.
func Join(own bridge.Device, t Torus) bridge.FabricNode {
	return &node{Device: own, fabric: &fabric{
		Torus: t, own: own.Info().Node, device: own, far: make(map[abi.Node]*farNode), windows: windows{open: make(map[*window]bool)},
	}}
}

// fabric is a Torus with the devices of its nodes.
type fabric struct {
	Torus
	own     abi.Node
	device  bridge.Device // of that node
	windows windows

	reviving sync.Mutex // held while one that is lost is reset for a listener

	opening sync.Mutex // guards what follows; held while one is opened
	far     map[abi.Node]*farNode
	closed  bool

	ending sync.Once
	result error // of end
}

// farNode is how this process reaches another node.
type farNode struct {
	dev     *farDevice    // nil when it was closed
	leaving chan struct{} // while one is closed; nil else
}

// farDevice is the device of another node; one that was closed is opened anew when it is
// asked for again.
type farDevice struct {
	bridge.Device
	fabric *fabric
	at     *farNode
	shares int // that are not closed; guarded by opening
}

// release gives one share up. The device is closed with the last of them.
func (d *farDevice) release() error {
	d.fabric.opening.Lock()
	d.shares--
	last := d.shares == 0
	d.fabric.opening.Unlock()
	if !last {
		return nil
	}
	return d.Close()
}

// Close closes what this process has at the node. Calls of it may be waited for, and
// they may open nodes: no lock is held meanwhile.
func (d *farDevice) Close() error {
	d.fabric.opening.Lock()
	mine := d.at.dev == d
	if mine {
		d.at.dev, d.at.leaving = nil, make(chan struct{})
	}
	d.fabric.opening.Unlock()
	err := d.Device.Close()
	if mine {
		d.fabric.opening.Lock()
		close(d.at.leaving)
		d.at.leaving = nil
		d.fabric.opening.Unlock()
	}
	return err
}

// Device returns the device of another node, which is opened when it is first asked for
// and closed with the last share of it, or the fabric.
func (f *fabric) Device(ctx context.Context, n abi.Node) (bridge.Device, error) {
	dev, err := f.reach(ctx, n, 1)
	if err != nil {
		return nil, fmt.Errorf("node %v: %w", n, err)
	}
	return &share{farDevice: dev}, nil
}

// reach returns the device of another node, and counts so many more shares of it. Its error does
// not name the node.
func (f *fabric) reach(ctx context.Context, n abi.Node, shares int) (*farDevice, error) {
	if n == f.own {
		return nil, fmt.Errorf("%w: it is the device that was opened", bridge.ErrInvalid)
	}
	if err := f.enter(ctx, n); err != nil {
		return nil, err
	}
	defer f.opening.Unlock()
	far := f.far[n]
	if far != nil && far.dev != nil {
		far.dev.shares += shares
		return far.dev, nil
	}
	dev, err := f.Open(ctx, n)
	if err != nil {
		return nil, err
	}
	if far == nil {
		far = &farNode{}
		f.far[n] = far
	}
	far.dev = &farDevice{Device: dev, fabric: f, at: far, shares: shares}
	return far.dev, nil
}

// visited is a device to whose processes a host connects from where it listens.
type visited interface {
	ListenOnNodes(ctx context.Context, o bridge.ListenOptions, come func(context.Context, abi.Node, bridge.Target, uint64) (bridge.Channel, error)) (bridge.Listener, error)
	Come(ctx context.Context, listener bridge.Target, number uint64) (bridge.Channel, error)
}

// listen is Listen of the device of a node.
func (f *fabric) listen(ctx context.Context, at abi.Node, d bridge.Device, o bridge.ListenOptions) (bridge.Listener, error) {
	l, ok := d.(visited)
	if !ok {
		return nil, bridge.ErrNotSupported
	}
	return l.ListenOnNodes(ctx, o, func(ctx context.Context, n abi.Node, t bridge.Target, number uint64) (bridge.Channel, error) {
		return f.come(ctx, n, bridge.At(at, t), number)
	})
}

// come opens the channel to a process of a node that connected to this host at another.
func (f *fabric) come(ctx context.Context, n abi.Node, listener bridge.Target, number uint64) (bridge.Channel, error) {
	dev := f.device
	if n != f.own {
		far, err := f.reach(ctx, n, 0)
		if err != nil {
			return nil, err
		}
		dev = far.Device
	}
	d, ok := dev.(visited)
	if !ok {
		return nil, bridge.ErrNotSupported
	}
	ch, err := d.Come(ctx, listener, number)
	if n == f.own || !errors.Is(err, bridge.ErrDeviceLost) {
		return ch, err
	}
	return f.comeAgain(ctx, dev, func() (bridge.Channel, error) { return d.Come(ctx, listener, number) })
}

// comeAgain opens the channel where the node was lost and runs again, as a process of it has
// connected: it resets the device. The state of this process there is lost already; state that
// another call made since then stays.
func (f *fabric) comeAgain(ctx context.Context, dev bridge.Device, come func() (bridge.Channel, error)) (bridge.Channel, error) {
	f.reviving.Lock()
	defer f.reviving.Unlock()
	ch, err := come()
	if !errors.Is(err, bridge.ErrDeviceLost) {
		return ch, err
	}
	if err := dev.Reset(ctx); err != nil {
		return nil, err
	}
	return come()
}

// Listen makes this host a target of the own node's device.
func (n *node) Listen(ctx context.Context, o bridge.ListenOptions) (bridge.Listener, error) {
	return n.fabric.listen(ctx, n.fabric.own, n.Device, o)
}

// Listen makes this host a target of that node's device.
func (d *farDevice) Listen(ctx context.Context, o bridge.ListenOptions) (bridge.Listener, error) {
	return d.fabric.listen(ctx, d.Info().Node, d.Device, o)
}

// enter locks opening when nobody leaves that node.
func (f *fabric) enter(ctx context.Context, n abi.Node) error {
	for {
		f.opening.Lock()
		far := f.far[n]
		switch {
		case f.closed:
			f.opening.Unlock()
			return errClosed
		case far == nil || far.leaving == nil:
			return nil
		}
		leaving := far.leaving
		f.opening.Unlock()
		select {
		case <-leaving:
		case <-ctx.Done():
			return &bridge.WithdrawnError{Cause: ctx.Err()}
		}
	}
}

// opened lists the devices of other nodes that are open.
func (f *fabric) opened() (all []*farDevice) {
	f.opening.Lock()
	defer f.opening.Unlock()
	for _, far := range f.far {
		if far.dev != nil {
			all = append(all, far.dev)
		}
	}
	return all
}

// leaving lists what ends when devices of other nodes are closed.
func (f *fabric) leaving() (all []chan struct{}) {
	f.opening.Lock()
	defer f.opening.Unlock()
	for _, far := range f.far {
		if far.leaving != nil {
			all = append(all, far.leaving)
		}
	}
	return all
}

// close ends all nodes. It is idempotent.
func (f *fabric) close() error {
	f.opening.Lock()
	f.closed = true // nobody arrives any more
	f.opening.Unlock()
	if t, ok := f.Torus.(interface{ Leave() }); ok {
		t.Leave()
	}
	f.windows.end(errClosed)
	f.ending.Do(func() { f.result = f.end() })
	return f.result
}

func (f *fabric) end() error {
	var errs []error
	for _, dev := range f.opened() {
		errs = append(errs, dev.Close())
	}
	for _, left := range f.leaving() {
		<-left
	}
	return errors.Join(append(errs, f.End())...)
}

// node is a device that is a node of a fabric.
type node struct {
	bridge.Device
	fabric *fabric
}

// Fabric returns the fabric.
func (n *node) Fabric() bridge.Fabric { return n.fabric }

// Share shares memory with the processes of the own node.
func (n *node) Share(file int) (bridge.Region, uint64, error) {
	s, ok := n.Device.(bridge.Sharer)
	if !ok {
		return nil, 0, bridge.ErrNotSupported
	}
	return s.Share(file)
}

// at returns the device of a node, which may be the own one, and the context for a call of it.
func (n *node) at(ctx context.Context, place abi.Node) (bridge.Device, context.Context, error) {
	if err := ctx.Err(); err != nil {
		return nil, ctx, &bridge.WithdrawnError{Cause: err}
	}
	if place == n.fabric.own {
		return n.Device, ctx, nil
	}
	if err := bridge.CheckEpoch(ctx, n.Device.Info().Epoch); err != nil {
		return nil, ctx, err
	}
	ctx = bridge.InEpoch(ctx, 0) // that node counts its own
	dev, err := n.fabric.reach(ctx, place, 0)
	if err != nil {
		return nil, ctx, err
	}
	return dev, ctx, nil
}

// Subscribe opens the channel to a target of any node.
func (n *node) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	place, there := t.Node()
	if !there || !abi.ID(t).Valid() {
		return n.Device.Subscribe(ctx, t)
	}
	dev, ctx, err := n.at(ctx, place)
	if errors.Is(err, bridge.ErrInvalid) {
		err = fmt.Errorf("%w: %w", bridge.ErrNotSubscribed, err)
	}
	if err != nil {
		return nil, err
	}
	ch, err := dev.Subscribe(ctx, bridge.Target(abi.ID(t).Target()))
	if err != nil {
		return nil, err
	}
	return &remote{ch.(bridge.Beginner), t}, nil
}

// Dial opens the channel to the listener of a name at this node, or at the one before the name.
func (n *node) Dial(ctx context.Context, name string, o bridge.DialOptions) (bridge.Channel, error) {
	text, rest, there := strings.Cut(name, "/")
	if !there {
		return dial(ctx, n.Device, name, o)
	}
	place, ok := abi.ParseNode(text)
	if !ok {
		return nil, fmt.Errorf("%w: no node %q", bridge.ErrInvalid, text)
	}
	dev, ctx, err := n.at(ctx, place)
	if err != nil {
		return nil, err
	}
	ch, err := dial(ctx, dev, rest, o)
	if err != nil {
		return nil, err
	}
	return &remote{ch.(bridge.Beginner), bridge.At(place, ch.Target())}, nil
}

// dial is Dial of a device that may have no listeners.
func dial(ctx context.Context, dev bridge.Device, name string, o bridge.DialOptions) (bridge.Channel, error) {
	d, ok := dev.(bridge.HostListener)
	if !ok {
		return nil, bridge.ErrNotSupported
	}
	return d.Dial(ctx, name, o)
}

// Dial opens the channel to the listener of a name at that node.
func (d *farDevice) Dial(ctx context.Context, name string, o bridge.DialOptions) (bridge.Channel, error) {
	return dial(ctx, d.Device, name, o)
}

// remote is a channel of a mailbox that names its node.
type remote struct {
	bridge.Beginner
	target bridge.Target
}

// Target returns the id that was subscribed.
func (c *remote) Target() bridge.Target { return c.target }

// Reset revokes the windows of this process, and resets the device and what it has at other
// nodes. Nodes that do not answer stay lost.
func (n *node) Reset(ctx context.Context) error {
	if bridge.CheckEpoch(ctx, n.Info().Epoch) != nil {
		return nil
	}
	ends := n.fabric.windows.end(bridge.ErrReset)
	defer n.fabric.windows.begin(ends)
	err := n.Device.Reset(ctx)
	if err != nil {
		return err
	}
	for _, far := range n.fabric.opened() {
		_ = far.Reset(ctx)
	}
	return nil
}

// Close closes the devices of other nodes, then the device.
func (n *node) Close() error { return errors.Join(n.fabric.close(), n.Device.Close()) }
