//go:build cgo

package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/nodes"
)

// self is the owner of all hosts of this process.
const self = 1

// torus is the fabric of which the device is node 0.0.0.
type torus struct {
	mesh.Fabric
	o    options
	own  *firmware.Instance // of node 0.0.0
	info bridge.Info
	log  *logqueue.Queue // of the device; closed with that
	far  map[abi.Node]*farNode
}

var _ nodes.Torus = (*torus)(nil)

// farNode is another node: the device that runs there, and where this process is its host.
type farNode struct {
	index    int
	firmware *firmware.Instance
	log      *logPipe
	near     *firmware.Near
}

// newTorus starts the nodes of a torus.
func newTorus(o options, own *firmware.Instance, info bridge.Info, log *logqueue.Queue) (*torus, error) {
	m, err := mesh.Open(mesh.Config{Side: o.torus, Threads: meshThreads(), Spin: o.shape.Spin})
	if err != nil {
		return nil, err
	}
	if err := breakLinks(m, o.errors); err != nil {
		m.Close()
		return nil, err
	}
	joints, err := m.Joints(0, own, self)
	if err != nil {
		m.Close()
		return nil, err
	}
	own.Join(joints)
	o.shape.Shared = 1 // the host at node 0.0.0
	return &torus{Fabric: mesh.Fabric{Mesh: m}, o: o, own: own, info: info, log: log, far: make(map[abi.Node]*farNode)}, nil
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

// Open makes this process a host of the device of another node, which is started when it is
// first asked for.
func (t *torus) Open(ctx context.Context, n abi.Node) (bridge.Device, error) {
	far := t.far[n]
	if far == nil {
		i, err := t.Index(n)
		if err != nil {
			return nil, fmt.Errorf("%w: not in this torus", bridge.ErrInvalid)
		}
		if far, err = t.boot(i); err != nil {
			return nil, err
		}
		t.far[n] = far
	}
	p, err := newFarPort(ctx, far.near, far.firmware, func() bool { return t.reaches(far.index) })
	if err != nil {
		return nil, err
	}
	info := t.info
	info.Node = n
	dev, err := mailbox.Open(ctx, p, info, &mailbox.Options{Logger: t.log.Logger(), Stall: t.o.stall, Answer: answerTime})
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return dev, nil
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
	if err := t.Mesh.SetDevice(i, instance, shape); err != nil {
		instance.Close()
		log.Close()
		return nil, t.Error(err)
	}
	near, err := t.Mesh.Near(0, i, shape, self, nil, 0)
	if err != nil {
		_ = t.Mesh.EndDevice(i)
		instance.Close()
		log.Close()
		return nil, t.Error(err)
	}
	return &farNode{index: i, firmware: instance, log: log, near: near}, nil
}

// reaches reports whether there is a way to a node.
func (t *torus) reaches(i int) bool {
	hops, err := t.Mesh.Route(0, i)
	return err == nil && len(hops) > 0
}

// End ends all nodes.
func (t *torus) End() error {
	t.own.Join(nil)
	var errs []error
	for _, far := range t.far {
		_ = t.Mesh.EndDevice(far.index)
		errs = append(errs, far.stop(t.log))
	}
	t.Mesh.Close()
	return errors.Join(errs...)
}
