package spread

import (
	"context"
	"errors"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Run starts number processes of a program with one port each, spread over the
// islands from the last to the first, and subscribes them. Where the device has no
// room for all it returns those it has room for; an error means that there are none,
// or that something else failed, and then nothing is left. They do not end with ctx,
// but by Close: what they share can then go after them.
func Run(ctx context.Context, dev *nfcomms.Device, number int, p nfcomms.Program) (list []*nfcomms.Instance, err error) {
	info := dev.Info()
	each := (info.Channels + info.Islands - 1) / info.Islands // targets of an island
	var full error
	for i := range number {
		island := info.Islands - 1 - i%info.Islands
		end := min((island+1)*each, info.Channels)
		p.First = nfcomms.Target(end - 1 - i/info.Islands)
		if ctx.Err() != nil {
			return nil, errors.Join(ctx.Err(), Close(list))
		}
		c, err := dev.Run(context.WithoutCancel(ctx), p)
		switch {
		case err == nil:
			list = append(list, c)
		case errors.Is(err, nfcomms.ErrNoMemory):
			full = err
		default:
			return nil, errors.Join(err, Close(list))
		}
	}
	if len(list) == 0 {
		return nil, full
	}
	return list, nil
}

// Close ends processes and waits until they have ended.
func Close(list []*nfcomms.Instance) (err error) {
	for _, i := range list {
		err = errors.Join(err, i.Close())
	}
	return err
}
