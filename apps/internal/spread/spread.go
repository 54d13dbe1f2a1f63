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
		c, err := start(ctx, dev, p)
		switch {
		case err == nil:
			list = append(list, c)
		case errors.Is(err, nfcomms.ErrNoMemory):
			full = err
		default:
			return nil, errors.Join(err, Close(dev, list...))
		}
	}
	if len(list) == 0 {
		return nil, full
	}
	return list, nil
}

// start starts one process. An island that computes on a busy machine may not answer
// in time: nothing has begun then, and it is asked again.
func start(ctx context.Context, dev *nfcomms.Device, p nfcomms.Program) (*nfcomms.Instance, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		i, err := dev.Run(context.WithoutCancel(ctx), p)
		if !errors.Is(err, nfcomms.ErrTargetTimeout) {
			return i, err
		}
	}
}

// Close ends processes and waits until they have ended, however long they compute; a
// device that never answers is lost, and the processes with it.
func Close(dev *nfcomms.Device, list ...*nfcomms.Instance) (err error) {
	for _, i := range list {
		e := i.Close()
		for errors.Is(e, nfcomms.ErrTargetTimeout) {
			e = dev.Stop(context.Background(), i.Process.ID)
		}
		if errors.Is(e, nfcomms.ErrInvalid) { // it had been asked, and has returned
			e = nil
		}
		err = errors.Join(err, e)
	}
	return err
}
