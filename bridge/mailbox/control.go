package mailbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// control is the client of the device's control channel. One request is under
// way at a time: the device serves them one by one.
type control struct {
	ch      *channel
	queue   queue
	request uint32 // number of the last one; guarded by queue
}

// stopTime bounds the wait for a process that was asked to stop, if the caller's
// context has no deadline. Processes get to know at once.
const stopTime = 5 * time.Second

// call sends a request, with image after it if there is one, and returns the reply. Once the device
// took the request the call waits for the reply even when ctx ends, because it may hand over
// something. A device that then does not answer in time is lost.
func (k *control) call(ctx context.Context, req wire.Control, image []byte) (wire.Control, error) {
	if err := k.queue.lock(ctx); err != nil {
		return wire.Control{}, &bridge.WithdrawnError{Cause: err}
	}
	defer k.queue.unlock()
	k.request++
	req.Request = k.request
	var s wire.Slot
	*s.Control() = req
	if err := k.ch.Send(ctx, s.Bytes()[:]); err != nil {
		return wire.Control{}, err
	}
	ctx, cancel := grace(ctx)
	defer cancel()
	var sent error
	if before := k.ch.send.id(); image != nil {
		sent = k.ch.SendInd(ctx, image)
		if sent != nil && k.ch.send.id() == before { // not offered: the device waits for the next request
			return wire.Control{}, sent
		}
	}
	reply, err := k.reply(ctx, &req)
	if err == nil {
		err = sent
	}
	return reply, err
}

// grace returns a context that outlives ctx by the time a device may be silent.
func grace(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(background)
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(heartbeatTimeout, cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})
	return late, func() {
		stop()
		cancel()
	}
}

// reply takes the answer to a request.
func (k *control) reply(ctx context.Context, req *wire.Control) (wire.Control, error) {
	ctx, cancel := k.ch.ep.bounded(ctx)
	defer cancel()
	var s wire.Slot
	n, err := k.ch.Receive(ctx, s.Bytes()[:])
	if err != nil && ctx.Err() != nil {
		k.ch.ep.fail(fmt.Errorf("%w: control request %d: no answer", bridge.ErrDeviceLost, req.Op))
		<-k.ch.ep.fenced
		err = k.ch.ep.err()
	}
	if err != nil && !errors.Is(err, bridge.ErrKindMismatch) {
		return wire.Control{}, err
	}
	r := *s.Control()
	if err != nil || n != abi.PayloadSize || r.Op != req.Op || r.Request != req.Request || r.Status >= uint16(abi.StatusCount) {
		k.ch.ep.fail(fmt.Errorf("%w: control request %d/%d answered by %d bytes, %d/%d, status %d",
			bridge.ErrFault, req.Op, req.Request, n, r.Op, r.Request, r.Status))
		return wire.Control{}, k.ch.ep.err()
	}
	err = bridge.Error(abi.Status(r.Status))
	if r.Status == uint16(abi.ErrTimeout) { // an island does not answer
		err = k.ch.ep.dev.blame(err)
	}
	return r, err
}

// open subscribes a target.
func (k *control) open(ctx context.Context, id uint32) (*channel, error) {
	return k.subscribe(ctx, id, func(*channel) {})
}

// subscribe is open of a channel that prepare has seen before anybody else.
func (k *control) subscribe(ctx context.Context, id uint32, prepare func(c *channel)) (*channel, error) {
	e := k.ch.ep
	c := e.newChannel(id)
	c.opening = true
	prepare(c)
	for !e.table.add(c) {
		if !e.gone(id) {
			return nil, bridge.ErrBusy
		}
	}
	reply, err := k.call(ctx, wire.Control{Op: wire.ControlOpen, A: uint64(id)}, nil)
	if err != nil {
		e.table.remove(c)
		return nil, err
	}
	c.mailbox.rx.Lock()
	c.mailbox.openLocked(c, reply.A, reply.B, reply.C)
	c.mailbox.rx.Unlock()
	return c, nil
}

// start runs a program.
func (k *control) start(ctx context.Context, p bridge.Program) (bridge.Process, error) {
	req := wire.Control{Op: wire.ControlStart, A: uint64(p.First), B: uint64(p.Targets), C: p.Argument}
	if p.Name == "" || len(p.Name) >= abi.NameSize || strings.IndexByte(p.Name, 0) >= 0 {
		return bridge.Process{}, bridge.ErrNoProgram
	}
	if limit := int(k.ch.ep.Hello.Channels); p.Targets < 1 || p.Targets > limit || p.First > bridge.Target(limit-p.Targets) {
		return bridge.Process{}, fmt.Errorf("%d targets from %v: %w", p.Targets, p.First, bridge.ErrInvalid)
	}
	copy(req.Name[:], p.Name)
	r, err := k.call(ctx, req, nil)
	if err != nil {
		return bridge.Process{}, err
	}
	if r.B+uint64(p.Targets) > uint64(k.ch.ep.Hello.Channels) || r.B >= abi.ChannelsMax {
		k.ch.ep.fail(fmt.Errorf("%w: program started at target %d", bridge.ErrFault, r.B))
		return bridge.Process{}, k.ch.ep.err()
	}
	for i := range p.Targets {
		k.ch.ep.settle(uint32(r.B) + uint32(i))
	}
	return bridge.Process{ID: bridge.ProcessID(r.A), First: bridge.Target(r.B), Targets: p.Targets}, nil
}

// stop asks a process to return and waits until it has. The device answers ErrBusy until
// then, and remembers the first request also where no other follows.
func (k *control) stop(ctx context.Context, id bridge.ProcessID) error {
	if _, bounded := ctx.Deadline(); bounded {
		return k.stopWithin(ctx, id)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	err := k.stopWithin(ctx, id)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, bridge.ErrTargetTimeout) {
		err = k.ch.ep.dev.blame(fmt.Errorf("not returned in %v: %w", stopTime, bridge.ErrTargetTimeout))
	}
	return err
}

// stopWithin is stop until ctx ends.
func (k *control) stopWithin(ctx context.Context, id bridge.ProcessID) error {
	const first, most = 100 * time.Microsecond, 5 * time.Millisecond
	told := false
	for wait := first; ; wait = min(2*wait, most) {
		_, err := k.call(ctx, wire.Control{Op: wire.ControlStop, A: uint64(id)}, nil)
		switch {
		case told && errors.Is(err, bridge.ErrInvalid):
			return nil // already closed
		case told && errors.Is(err, bridge.ErrWithdrawn): // the question, not the stop
			return k.toldToStop(ctx)
		case !errors.Is(err, bridge.ErrBusy):
			return err
		}
		told = true
		k.ch.ep.drain() // a process may wait until its offers are withdrawn, for which no call waits
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return k.toldToStop(ctx)
		}
	}
}

// toldToStop is the error of a stop that ended with ctx before the process returned.
func (k *control) toldToStop(ctx context.Context) error {
	return k.ch.ep.dev.blame(fmt.Errorf("process told to stop: %w", ctx.Err()))
}

// load hands an image over.
func (k *control) load(ctx context.Context, image []byte) (string, error) {
	r, err := k.call(ctx, wire.Control{Op: wire.ControlLoad, A: uint64(len(image))}, image)
	if why := r.Why(); err != nil && why != "" {
		err = &bridge.ImageError{Why: why, Err: err}
	}
	return k.name(&r, err)
}

// name returns the name in a reply.
func (k *control) name(r *wire.Control, err error) (string, error) {
	if err != nil {
		return "", err
	}
	n := bytes.IndexByte(r.Name[:], 0)
	if n < 1 {
		k.ch.ep.fail(fmt.Errorf("%w: reply with name %q", bridge.ErrFault, r.Name))
		return "", k.ch.ep.err()
	}
	return string(r.Name[:n]), nil
}

// programsMax bounds what a device may list.
const programsMax = 1 << 16

// programs lists names until there is none.
func (k *control) programs(ctx context.Context) ([]string, error) {
	var names []string
	for i := range uint64(programsMax) {
		r, err := k.call(ctx, wire.Control{Op: wire.ControlProgram, A: i}, nil)
		if errors.Is(err, bridge.ErrNoProgram) {
			break
		}
		name, err := k.name(&r, err)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// memory describes a memory type.
func (k *control) memory(ctx context.Context, kind int) (bridge.Memory, error) {
	if kind < 0 || kind >= abi.MemoryCount {
		return bridge.Memory{}, fmt.Errorf("no type %d: %w", kind, bridge.ErrInvalid)
	}
	r, err := k.call(ctx, wire.Control{Op: wire.ControlMemory, A: uint64(kind)}, nil)
	if err != nil {
		return bridge.Memory{}, err
	}
	return bridge.Memory{Base: r.A, Size: r.B, Free: r.C}, nil
}
