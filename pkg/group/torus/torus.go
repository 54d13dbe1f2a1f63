package torus

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// Open places so many members on the nodes of a device's fabric, in turn, x first, and
// returns the transport that joins them. Its Close gives the nodes back; the device
// stays open. ErrNotSupported if the device is in no fabric.
func Open(ctx context.Context, dev *nfcomms.Device, members int) (*group.Relayed, error) {
	f := fabric.Of(dev)
	if f == nil {
		return nil, fmt.Errorf("members on nodes: no fabric: %w", nfcomms.ErrNotSupported)
	}
	state, err := f.State(ctx)
	if err != nil {
		return nil, err
	}
	var relays []io.ReadWriteCloser
	for i := range min(members, len(state.Nodes)) {
		x, y, z := i%state.Side[0], i/state.Side[0]%state.Side[1], i/state.Side[0]/state.Side[1]
		at := fabric.At(uint8(x), uint8(y), uint8(z))
		node := dev
		if at != state.Node {
			if node, err = fabric.Device(ctx, dev, at); err != nil {
				break
			}
		}
		var r io.ReadWriteCloser
		if r, err = open(ctx, node); err != nil {
			break
		}
		relays = append(relays, r)
	}
	if err != nil {
		for _, r := range relays {
			err = errors.Join(err, r.Close())
		}
		return nil, err
	}
	return group.NewRelayed(members, relays), nil
}

// A piece of more bytes than a message has is sent as a transfer of up to so many.
const pieceSize = 256 << 10

// relay is a process of a node that returns what it receives, and the channel to it.
type relay struct {
	node    *nfcomms.Device
	process nfcomms.Process
	ch      *nfcomms.Channel
	ctx     context.Context // of calls, until Close
	cancel  context.CancelFunc
	buf     []byte
	rest    []byte // of buf: not yet read
}

func open(ctx context.Context, node *nfcomms.Device) (*relay, error) {
	p, err := node.Start(ctx, nfcomms.Program{Name: "loopback", Targets: 1})
	if err != nil {
		return nil, err
	}
	ch, err := node.Subscribe(ctx, p.First)
	if err != nil {
		return nil, errors.Join(err, node.Stop(ctx, p.ID))
	}
	r := &relay{node: node, process: p, ch: ch, buf: make([]byte, pieceSize)}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return r, nil
}

// Write sends all of p.
func (r *relay) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		piece := p[done:min(len(p), done+pieceSize)]
		var err error
		if len(piece) <= nfcomms.MessageSize {
			err = r.ch.Send(r.ctx, piece)
		} else {
			err = r.ch.SendInd(r.ctx, piece)
		}
		if err != nil {
			return done, err
		}
		done += len(piece)
	}
	return len(p), nil
}

// Read takes what the relay returned.
func (r *relay) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		offer, err := r.ch.Next(r.ctx)
		if err != nil {
			return 0, err
		}
		n := 0
		switch {
		case offer.Size > pieceSize:
			err = fmt.Errorf("a piece of %d bytes came back", offer.Size)
		case offer.Indirect:
			n, err = r.ch.ReceiveInd(r.ctx, r.buf[:offer.Size])
		default:
			n, err = r.ch.Receive(r.ctx, r.buf)
		}
		if err != nil {
			return 0, err
		}
		r.rest = r.buf[:n]
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close ends calls that run, and the process.
func (r *relay) Close() error {
	r.cancel()
	err := r.ch.Close()
	if serr := r.node.Stop(context.WithoutCancel(r.ctx), r.process.ID); !gone(serr) {
		err = errors.Join(err, serr)
	}
	return err
}

// gone reports whether there is nothing left to stop.
func gone(err error) bool {
	return err == nil || errors.Is(err, nfcomms.ErrDeviceLost) || errors.Is(err, nfcomms.ErrClosed)
}
