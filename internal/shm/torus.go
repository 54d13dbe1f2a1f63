//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/nodes"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// torus is the fabric that the device process is a node of, as it tells.
type torus struct {
	port    *port
	options options
	info    bridge.Info
	log     *logqueue.Queue // of the device; closed with that
	device  asker
}

// asker is a device whose heartbeat is watched while its process is asked something; see bridge/mailbox.
type asker interface {
	Ask(something func() (lost error))
}

var _ nodes.Torus = (*torus)(nil)

// ask makes a request that is answered with a message, and by some with data.
func (t *torus) ask(m *shmwire.Message, data bool) (shmwire.Message, []byte, error) {
	files := 0
	if data {
		files = 1
	}
	var answer shmwire.Message
	var got []int
	var err error
	t.device.Ask(func() error {
		answer, got, err = t.port.linked().request(m, files)
		return nil
	})
	if err != nil || !data {
		return answer, nil, err
	}
	defer syscall.Close(got[0])
	content, err := shmwire.ReadMemory(got[0], answer.Size)
	return answer, content, err
}

// State asks the process's node.
func (t *torus) State() (bridge.FabricState, error) {
	_, data, err := t.ask(&shmwire.Message{Kind: shmwire.State}, true)
	if err != nil {
		return bridge.FabricState{}, err
	}
	return shmwire.ParseState(data)
}

// Route asks the process's node, which tells what it knows of the others.
func (t *torus) Route(from, to abi.Node) ([]bridge.FabricHop, error) {
	_, data, err := t.ask(&shmwire.Message{Kind: shmwire.Route, Address: shmwire.AddressOfRoute(from, to)}, true)
	if err != nil {
		return nil, err
	}
	hops, err := shmwire.ParseRoute(data)
	if hops == nil && from == to {
		hops = []bridge.FabricHop{}
	}
	return hops, err
}

// badLink refuses what is no link before it is asked for.
func badLink(link int) error {
	if link < 0 || link >= bridge.FabricLinks {
		return fmt.Errorf("link %d: %w: want 0..%d", link, bridge.ErrInvalid, bridge.FabricLinks-1)
	}
	return nil
}

// CutLink cuts a link of the process's node, or mends it.
func (t *torus) CutLink(n abi.Node, link int, cut bool) error {
	if err := badLink(link); err != nil {
		return err
	}
	m := shmwire.Message{Kind: shmwire.Cut, Address: shmwire.AddressOfLink(n, link)}
	if cut {
		m.Size = 1
	}
	_, _, err := t.ask(&m, false)
	return err
}

// KillNode is up to the operator of the node's process.
func (*torus) KillNode(n abi.Node, _ bool) error {
	return fmt.Errorf("node %v is a process: %w", n, bridge.ErrNotSupported)
}

// SilenceNode is up to the operator of the node's process.
func (t *torus) SilenceNode(n abi.Node) error { return t.KillNode(n, true) }

// TestLink tests a link of the process's node, a slice of time after the other.
func (t *torus) TestLink(ctx context.Context, n abi.Node, link int, words uint64) (total bridge.LinkTest, err error) {
	if err := badLink(link); err != nil {
		return total, err
	}
	if words == 0 {
		return total, fmt.Errorf("a test of no words: %w", bridge.ErrInvalid)
	}
	for total.Words < words {
		if ctx.Err() != nil {
			return total, ctx.Err()
		}
		m := shmwire.Message{Kind: shmwire.Test, Address: shmwire.AddressOfLink(n, link), Size: words - total.Words}
		slice, _, err := t.ask(&m, false)
		if err != nil {
			return total, err
		}
		total.Words += slice.Address
		total.Wrong += slice.Size
	}
	return total, nil
}

// Put has the process's node write to a window.
func (t *torus) Put(ctx context.Context, to bridge.FabricWindow, offset uint64, data []byte) error {
	return t.access(ctx, shmwire.Put, to, offset, data)
}

// Get has it read from one.
func (t *torus) Get(ctx context.Context, from bridge.FabricWindow, offset uint64, buf []byte) error {
	return t.access(ctx, shmwire.Get, from, offset, buf)
}

// Open makes this process a host of the device of another node.
func (t *torus) Open(ctx context.Context, n abi.Node) (bridge.Device, error) {
	o := t.options
	o.node, o.far = n, true
	dev, _, err := openHost(ctx, o, t.info, t.log)
	if errors.Is(err, bridge.ErrNotSubscribed) {
		err = fmt.Errorf("%w: not in this torus", bridge.ErrInvalid)
	}
	return dev, err
}

// Leave has no request wait long for a device process that stands still.
func (t *torus) Leave() { t.port.linked().shorten() }

// End has nothing to end: the fabric is the process's.
func (*torus) End() error { return nil }
