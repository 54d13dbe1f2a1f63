//go:build linux

package soak

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// victim is a client in a state in which it, or its device, is killed.
type victim struct {
	dev     *nfcomms.Device
	address string
	chance  *rand.Rand
	region  []byte // memory of Alloc, if it has some
	arrived func() // says, once, that the state is reached
}

// soakStates are what a victim does until it is killed: it waits in a call, or repeats
// something, so that chance decides at which step of it the kill comes.
var soakStates = map[string]func(context.Context, *victim) error{
	"idle": func(ctx context.Context, v *victim) error {
		v.arrived()
		<-ctx.Done()
		return ctx.Err()
	},
	"message offered": waiting("hold", func(ctx context.Context, ch *nfcomms.Channel) error { return ch.Send(ctx, []byte("wait")) }),
	"transfer offered": waiting("hold", func(ctx context.Context, ch *nfcomms.Channel) error {
		return ch.SendInd(ctx, make([]byte, soakTransfer), soakTransfer)
	}),
	"message awaited": waiting("loopback", func(ctx context.Context, ch *nfcomms.Channel) error {
		_, err := ch.Receive(ctx, make([]byte, compare.MessageSize))
		return err
	}),
	"transfer awaited": waiting("loopback", func(ctx context.Context, ch *nfcomms.Channel) error {
		_, err := ch.ReceiveInd(ctx, make([]byte, soakTransfer), soakTransfer)
		return err
	}),
	"messages moving": moving(func(v *victim) ([]byte, error) { return make([]byte, v.chance.IntN(compare.MessageSize+1)), nil }),
	"transfers moving, copied": moving(func(v *victim) ([]byte, error) {
		return make([]byte, 1<<v.chance.IntN(22)), nil
	}),
	"transfers moving, in place": moving(func(v *victim) ([]byte, error) {
		if v.region == nil {
			r, err := v.dev.Alloc(1 << 22)
			if err != nil {
				return nil, err
			}
			v.region = r.Bytes()
		}
		return v.region[:1<<v.chance.IntN(22)], nil
	}),
	"withdrawing": repeat(withdrawOnce),
	"starting and stopping": repeat(func(ctx context.Context, v *victim) error {
		p, err := compare.Start(ctx, v.dev, "loopback", 1+v.chance.IntN(8))
		if err != nil {
			return err
		}
		return p.Stop(ctx)
	}),
	"mapping": repeat(func(_ context.Context, v *victim) error {
		r, err := v.dev.Alloc(1 << (12 + v.chance.IntN(16))) // to 128 MiB: more than an arena has
		if err != nil {
			return err
		}
		return r.Close()
	}),
	"resetting": repeat(func(ctx context.Context, v *victim) error { return v.dev.Reset(ctx) }),
	"attaching": repeat(func(ctx context.Context, v *victim) error {
		dev, err := nfcomms.Open(ctx, v.address)
		if err != nil {
			return err
		}
		return dev.Close()
	}),
}

// waiting is a state in which a call waits for a program.
func waiting(name string, call func(context.Context, *nfcomms.Channel) error) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		p, err := compare.Start(ctx, v.dev, name, 1)
		if err != nil {
			return err
		}
		ended := make(chan error, 1) // for compare.UntilBlocked or us
		go func() { ended <- call(ctx, p.Chans[0]) }()
		if err := compare.UntilBlocked(ctx, v.dev, 1, ended); err != nil {
			return err
		}
		v.arrived()
		return <-ended
	}
}

// moving is a state in which buffers go to a program and back.
func moving(buffer func(*victim) ([]byte, error)) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		p, err := compare.Start(ctx, v.dev, "loopback", 1)
		for err == nil {
			var b []byte
			if b, err = buffer(v); err == nil && len(b) <= compare.MessageSize {
				err = soakMessage(ctx, p.Chans[0], b, b)
			} else if err == nil {
				err = there(ctx, p.Chans[0], b)
			}
			v.arrived()
		}
		return err
	}
}

// there sends a transfer there and back.
func there(ctx context.Context, ch *nfcomms.Channel, b []byte) error {
	if err := ch.SendInd(ctx, b, len(b)); err != nil {
		return err
	}
	_, err := ch.ReceiveInd(ctx, b, len(b))
	return err
}

// repeat is a state in which something is done again and again.
func repeat(once func(context.Context, *victim) error) func(context.Context, *victim) error {
	return func(ctx context.Context, v *victim) error {
		for {
			if err := once(ctx, v); err != nil || ctx.Err() != nil {
				return err
			}
			v.arrived()
		}
	}
}

// withdrawOnce offers what nobody takes, and takes it back.
func withdrawOnce(ctx context.Context, v *victim) error {
	p, err := compare.Start(ctx, v.dev, "hold", 1)
	for range 100 {
		if err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, time.Duration(v.chance.IntN(200))*time.Microsecond)
		if v.chance.IntN(2) == 0 {
			err = p.Chans[0].Send(short, []byte("back"))
		} else {
			err = p.Chans[0].SendInd(short, make([]byte, soakTransfer), soakTransfer)
		}
		cancel()
		if errors.Is(err, nfcomms.ErrWithdrawn) || errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	}
	return p.Stop(ctx)
}
