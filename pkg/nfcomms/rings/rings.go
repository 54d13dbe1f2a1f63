//go:build linux

package rings

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/internal/over"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

// ServeWriter gives the writing side of a ring to a process, which takes it on its first port, until
// the process closes the side; then it returns nil.
//
// Any other end is an error: that of ctx, of the process, of its device or of the ring. The other side
// gets ring.ErrPeerDied then, unless the process still closed. ErrNotSupported where the device does
// not reach memory of this host in place, ring.ErrBusy if the side is taken.
//
// The process has the memory until it ends, so the call ends the instance in any case, and waits for it.
// Where the device was lost, the memory stays mapped until the device is closed.
func ServeWriter(ctx context.Context, dev *nfcomms.Device, r *ring.Ring, i *nfcomms.Instance) error {
	return serve(ctx, dev, r, i, r.HoldWriter, 0)
}

// ServeReader is ServeWriter of the reading side.
func ServeReader(ctx context.Context, dev *nfcomms.Device, r *ring.Ring, i *nfcomms.Instance) error {
	return serve(ctx, dev, r, i, r.HoldReader, 1)
}

// Messages are those of firmware/nfc_ring.h.
const (
	wordWake = 1
	wordEnd  = 2
	version  = 1

	packetHeader = 16
)

// serve gives a side that hold takes to a process.
func serve(ctx context.Context, dev *nfcomms.Device, r *ring.Ring, i *nfcomms.Instance,
	hold func(context.Context) (*ring.Holder, error), role uint32,
) error {
	side, err := hold(ctx)
	if err != nil {
		return errors.Join(err, i.Close())
	}
	region, address, err := share(dev, side)
	if err != nil {
		return errors.Join(fmt.Errorf("ring %q: %w", r.Name(), err), i.Close(), side.Close())
	}
	err = pass(ctx, side, i.Channels[0], place(r, region.Bytes(), address, role))
	if err != nil && side.Ended() {
		err = nil // it closed, and ended at once
	}
	ended := i.Close()
	if ended == nil && !errors.Is(err, nfcomms.ErrDeviceLost) { // else a process may still use the memory
		ended = region.Close()
	}
	if err = errors.Join(err, ended, side.Close()); err != nil {
		return fmt.Errorf("ring %q at %v: %w", r.Name(), i.Channels[0].Target(), err)
	}
	return nil
}

// share makes the ring's memory known to the device.
func share(dev *nfcomms.Device, side *ring.Holder) (bridge.Region, uint64, error) {
	s, ok := over.Of(dev).Bridge.(bridge.Sharer)
	if !ok {
		return nil, 0, fmt.Errorf("a ring is in the memory of one machine: %w", bridge.ErrNotSupported)
	}
	raw, err := side.File().SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	var region bridge.Region
	var address uint64
	var shared error
	err = raw.Control(func(fd uintptr) { region, address, shared = s.Share(int(fd)) })
	return region, address, errors.Join(err, shared)
}

// place is the first message.
func place(r *ring.Ring, mem []byte, address uint64, role uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, address)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(mem)))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Packets()))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Payload()+packetHeader))
	b = binary.LittleEndian.AppendUint32(b, role)
	return binary.LittleEndian.AppendUint32(b, version)
}

// pass passes wake-ups on, both ways, until one end has no more.
func pass(ctx context.Context, side *ring.Holder, ch *nfcomms.Channel, place []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := ch.Send(ctx, place); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(fromRing(ctx, side, ch))
	}()
	err := fromProcess(ctx, side, ch)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // of which err is the effect
	}
	cancel(nil)
	<-ended
	return err
}

// fromRing wakes the process whenever the other side does.
func fromRing(ctx context.Context, side *ring.Holder, ch *nfcomms.Channel) error {
	word := binary.LittleEndian.AppendUint32(nil, wordWake)
	for {
		if err := side.Wait(ctx); err != nil {
			return err
		}
		if err := ch.Send(ctx, word); err != nil {
			return err
		}
	}
}

// fromProcess wakes the other side whenever the process asks for it, until that has closed.
func fromProcess(ctx context.Context, side *ring.Holder, ch *nfcomms.Channel) error {
	var b [nfcomms.MessageSize]byte
	for {
		n, err := ch.Receive(ctx, b[:])
		if err != nil {
			return err
		}
		switch word := binary.LittleEndian.Uint32(b[:]); {
		case n != 4 || word != wordWake && word != wordEnd:
			return fmt.Errorf("%w: a message of %d bytes", ErrProcess, n)
		case word == wordEnd:
			return nil
		}
		side.Wake()
	}
}
