package mailbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// relayAnswer is how long the device may take for an answer that another host has to give
// first: it has two seconds.
const relayAnswer = 5 * time.Second

// fetchTime is how long a host may take to reach a process of another node. That has waited
// for it ten seconds when its channel closes.
const fetchTime = 8 * time.Second

// errTryHost is for what needs to know whether a target waits, of a device that does not pass that on
// between hosts.
var errTryHost = fmt.Errorf("try or select to send to a host: %w", bridge.ErrNotSupported)

var _ bridge.HostListener = (*device)(nil)

// openAtNode calls the method Come of the device of a node. It opens the channel to the process of that
// number there, which connected to a listener of this host.
type openAtNode = func(ctx context.Context, node abi.Node, listener bridge.Target, number uint64) (bridge.Channel, error)

// Listen makes this host a target. See bridge.HostListener.
func (d *device) Listen(ctx context.Context, o bridge.ListenOptions) (bridge.Listener, error) {
	return d.ListenOnNodes(ctx, o, nil)
}

// ListenOnNodes is Listen for processes of other nodes as well, whose channels come opens.
func (d *device) ListenOnNodes(ctx context.Context, o bridge.ListenOptions, come openAtNode) (bridge.Listener, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	req := wire.Control{Op: wire.ControlListen, B: wire.GuestsHere} // an older device ignores B
	if o.Name != "" {
		err = e.setName(&req, o.Name)
	}
	if err != nil {
		return nil, err
	}
	if o.Anyone {
		req.A = 1
	}
	if come != nil {
		req.B = wire.GuestsAll
	}
	r, err := e.control.call(ctx, req, nil)
	if err != nil {
		return nil, err
	}
	if !e.isTarget(r.B) || !e.isHost(r.C) {
		e.fail(fmt.Errorf("%w: listener %d at target %d", bridge.ErrFault, r.C, r.B))
		return nil, e.err()
	}
	l := &listener{ep: e, process: bridge.ProcessID(r.A), target: bridge.Target(r.C), come: come}
	if l.ch, err = e.control.open(background, uint32(r.B)); err != nil {
		return nil, errors.Join(err, e.control.stop(background, l.process))
	}
	return l, nil
}

// setName puts the name of a listener in a request, if the device keeps names.
func (e *epoch) setName(req *wire.Control, name string) error {
	if err := bridge.CheckName(name); err != nil {
		return err
	}
	if e.Hello.Capabilities&wire.CapNames == 0 {
		return fmt.Errorf("names: %w by this device", bridge.ErrNotSupported)
	}
	copy(req.Name[:], name)
	return nil
}

// Dial opens the channel to the listener of a name. See bridge.HostListener.
func (d *device) Dial(ctx context.Context, name string, o bridge.DialOptions) (bridge.Channel, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	req := wire.Control{Op: wire.ControlConnect}
	if o.Anyone {
		req.B = 1
	}
	if err := e.setName(&req, name); err != nil {
		return nil, err
	}
	r, err := e.control.call(ctx, req, nil)
	if err != nil {
		return nil, err
	}
	if !e.isHost(r.B) {
		e.fail(fmt.Errorf("%w: name %q is listener %d", bridge.ErrFault, name, r.B))
		return nil, e.err()
	}
	c, err := e.control.openRelay(r.A, bridge.Target(r.B))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// isTarget reports whether a device may name a target so.
func (e *epoch) isTarget(id uint64) bool {
	return id >= abi.TargetFirst && id < uint64(e.Hello.Channels)
}

// isHost reports whether an id is that of a host that listens.
func (e *epoch) isHost(id uint64) bool {
	return id >= abi.TargetHosts && id < abi.ChannelsMax && e.Hello.Channels <= abi.TargetHosts
}

// connect opens the channel to a host that listens.
func (k *control) connect(ctx context.Context, id bridge.Target) (*channel, error) {
	r, err := k.call(ctx, wire.Control{Op: wire.ControlConnect, A: uint64(id)}, nil)
	if errors.Is(err, bridge.ErrNotSupported) || errors.Is(err, bridge.ErrInvalid) { // an older device
		err = bridge.ErrNotSubscribed
	}
	if err != nil {
		return nil, err
	}
	return k.openRelay(r.A, id)
}

// Come opens the channel to a process of this device that connected to this host where it
// listens, at another node: listener is the id there, with the node.
func (d *device) Come(ctx context.Context, listener bridge.Target, number uint64) (bridge.Channel, error) {
	e, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	r, err := e.control.call(ctx, wire.Control{Op: wire.ControlConnect, A: uint64(listener), B: number}, nil)
	if err != nil {
		return nil, err
	}
	c, err := e.control.openFor(r.A, func(c *channel) { c.far = listener })
	if err != nil {
		return nil, err
	}
	return c, nil
}

// openRelay opens this host's target of a channel to another host.
func (k *control) openRelay(id uint64, far bridge.Target) (*channel, error) {
	return k.openFor(id, func(c *channel) {
		c.far, c.relay = far, true
		c.send.answer, c.recv.answer = relayAnswer, relayAnswer
	})
}

// openAccepted opens this host's target of a channel that somebody opened to it. To a process
// it is a channel as any other.
func (k *control) openAccepted(id uint64, far bridge.Target) (*channel, error) {
	if id&wire.AcceptProcess == 0 {
		return k.openRelay(id, far)
	}
	return k.openFor(id&^wire.AcceptProcess, func(c *channel) { c.far = far })
}

// openFor opens a target that the device named. It is this host's, so no context ends it.
func (k *control) openFor(id uint64, prepare func(*channel)) (*channel, error) {
	if !k.ch.ep.isTarget(id) {
		k.ch.ep.fail(fmt.Errorf("%w: somebody connected at target %d", bridge.ErrFault, id))
		return nil, k.ch.ep.err()
	}
	k.ch.ep.settle(uint32(id))
	return k.subscribe(background, uint32(id), prepare)
}

// listener is a process of the device that offers the target of each host or process that
// connected.
type listener struct {
	ep        *epoch
	process   bridge.ProcessID
	target    bridge.Target
	ch        *channel
	come      openAtNode // nil: this host reaches no other node
	accepting queue      // one call at a time receives

	ending sync.Once
	result error // of Close
}

// Target returns the id that hosts subscribe to.
func (l *listener) Target() bridge.Target { return l.target }

// Accept returns the channel to the next host or process that connects. A process of another
// node that this host does not reach, or no more, is left out.
func (l *listener) Accept(ctx context.Context) (bridge.Channel, error) {
	for {
		id, err := l.next(ctx)
		if err != nil {
			return nil, err
		}
		node, elsewhere := abi.ID(id).Node()
		if !elsewhere || l.come == nil {
			return l.open(id)
		}
		if ch, err := l.fetch(ctx, node, id&^wire.AcceptProcess); err == nil {
			return l.within(ch)
		}
	}
}

// within returns a channel of another node, unless the listener's epoch is over: the channel may
// then be of a later one.
func (l *listener) within(ch bridge.Channel) (bridge.Channel, error) {
	if err := l.ep.err(); err != nil {
		return nil, errors.Join(err, ch.Close())
	}
	return ch, nil
}

// next is the device's record of the next one.
func (l *listener) next(ctx context.Context) (uint64, error) {
	if err := l.accepting.lock(ctx); err != nil {
		return 0, &bridge.WithdrawnError{Cause: err}
	}
	defer l.accepting.unlock()
	var id [abi.PayloadSize]byte
	n, err := l.ch.Receive(ctx, id[:])
	if err != nil {
		return 0, err
	}
	if n != 8 {
		l.ep.fail(fmt.Errorf("%w: a listener's message of %d bytes", bridge.ErrFault, n))
		return 0, l.ep.err()
	}
	return binary.LittleEndian.Uint64(id[:]), nil
}

// open opens the channel to a host or process that connected at this device.
func (l *listener) open(id uint64) (bridge.Channel, error) {
	c, err := l.ep.control.openAccepted(id, l.target)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// fetch opens the channel to a process that connected at another node. The channel belongs to this
// host, so the context does not end the call; fetchTime does if the node does not answer.
func (l *listener) fetch(ctx context.Context, node abi.Node, id uint64) (bridge.Channel, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTime)
	defer cancel()
	return l.come(ctx, node, l.target, uint64(abi.ID(id).Target()))
}

// Close ends the listener.
func (l *listener) Close() error {
	l.ending.Do(func() {
		l.result = l.ch.Close()
		err := l.ep.control.stop(background, l.process)
		if err != nil && l.ep.err() == nil && !errors.Is(err, bridge.ErrInvalid) { // it ended as its channel closed
			l.result = errors.Join(l.result, err)
		}
	})
	return l.result
}
