package mailbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/region"
)

// Why memory is not given away.
var (
	errNoHost   = fmt.Errorf("only channels between hosts carry regions: %w", bridge.ErrNotSupported)
	errNotTaken = fmt.Errorf("the far host received it as a message, or does not reach the memory: %w", bridge.ErrKindMismatch)
	errNoRegion = fmt.Errorf("something else is offered: %w", bridge.ErrKindMismatch)
)

// A parcel is a message of fixed length: these bytes, the key of the memory, the number of the offer, the
// size, zeros.
const parcelMark = "\x00nfcomms.region\x00"

// parcelMessage returns the message that names memory under way.
func parcelMessage(p *region.Parcel) []byte {
	msg := append(make([]byte, 0, abi.PayloadSize), parcelMark...)
	for _, word := range []uint64{p.Key, p.Ticket, p.Size} {
		msg = binary.LittleEndian.AppendUint64(msg, word)
	}
	return msg[:abi.PayloadSize]
}

// parseParcel returns what a message names; false for any other message.
func parseParcel(msg []byte) (p region.Parcel, ok bool) {
	const at = len(parcelMark)
	if len(msg) != abi.PayloadSize || string(msg[:at]) != parcelMark {
		return p, false
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(msg[at+8*i:]) }
	p.Key, p.Ticket, p.Size = word(0), word(1), word(2)
	return p, string(msg) == string(parcelMessage(&p))
}

// SendRegion gives a region to the host at the far end. See bridge.Mover.
func (c *channel) SendRegion(ctx context.Context, r bridge.Region) error {
	switch {
	case ctx.Err() != nil:
		return &bridge.WithdrawnError{Cause: ctx.Err()}
	case !c.relay:
		return errNoHost
	case c.send.shut.Load() != 0:
		return c.send.err()
	}
	c.ep.asks()
	p, err := c.ep.dev.regions.Give(r, c.ep.Epoch)
	c.ep.answered()
	if err != nil {
		return err
	}
	err = c.Send(ctx, parcelMessage(p))
	if p.Settle() { // the memory's word decides, whatever became of the message
		return nil
	}
	if err == nil {
		err = errNotTaken
	}
	return err
}

// ReceiveRegion takes the region that the far host gives away. See bridge.Mover.
func (c *channel) ReceiveRegion(ctx context.Context) (bridge.Region, error) {
	if !c.relay {
		return nil, errNoHost
	}
	var got bridge.Region
	var refused error
	err := c.ReceiveFunc(ctx, func(msg []byte) (err error) {
		p, ok := parseParcel(msg)
		if !ok {
			return errNoRegion
		}
		c.ep.asks()
		got, err = c.ep.dev.regions.Take(p.Key, p.Ticket, p.Size)
		c.ep.answered()
		if errors.Is(err, bridge.ErrAborted) || errors.Is(err, bridge.ErrNotSupported) { // the message is of no use
			refused, err = err, nil
		}
		return err
	})
	switch {
	case got != nil: // also if the answer was lost: the region is this host's
		return got, nil
	case err != nil:
		return nil, err
	}
	return nil, refused
}
