package bridgetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

// Chaos has concurrent callers make random calls on a few channels and processes, until so many
// were made. They send and receive messages and transfers of every kind with contexts that end
// soon, close, stop and start; then the same with resets. Of a call nothing is expected but that it
// ends, and not because host or device broke the protocol. The device works afterwards. It needs
// the programs that Run needs.
func Chaos(t *testing.T, open OpenFunc, calls int) {
	t.Run("one life", func(t *testing.T) { chaosOf(t, open, calls/2, false) })
	t.Run("resets", func(t *testing.T) { chaosOf(t, open, calls/2, true) })
}

func chaosOf(t *testing.T, open OpenFunc, calls int, resets bool) {
	t.Helper()
	LeakCheck(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	e := &Env{T: t, open: open, watchdog: t.Context()}
	c := &chaos{Env: e, dev: e.device("managers=2"), resets: resets}
	c.left.Store(int64(calls))
	var all []*Pending
	for i := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		all = append(all, Call("caller", func() error { return c.caller(random) }))
	}
	for _, p := range all {
		require.NoError(t, <-p.done)
	}
	for i := range c.places {
		c.places[i].leave(e.Ctx(), c.dev)
	}
	e.Echo(e.Ports(c.dev, "loopback", 1)[0], []byte("still here"))
	require.Zero(t, c.dev.Stats().Faults)
	require.Zero(t, c.dev.Stats().Blocked)
	t.Logf("%d calls succeeded, %d did not", c.succeeded.Load(), c.failed.Load())
}

// chaos is a device, and what callers share on it.
type chaos struct {
	*Env
	dev               bridge.Device
	resets            bool
	places            [6]place
	left              atomic.Int64 // calls
	succeeded, failed atomic.Int64
}

// place is a process and the channel to its first port, or nothing.
type place struct {
	mu      sync.Mutex // guards what follows
	process bridge.Process
	ch      bridge.Channel
}

func (p *place) get() (bridge.Process, bridge.Channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process, p.ch
}

// set puts another process there and returns what was there. It may be in use.
func (p *place) set(process bridge.Process, ch bridge.Channel) (bridge.Process, bridge.Channel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	process, p.process = p.process, process
	ch, p.ch = p.ch, ch
	return process, ch
}

// leave ends what is there; others may have ended it before.
func (p *place) leave(ctx context.Context, dev bridge.Device) {
	process, ch := p.set(bridge.Process{}, nil)
	if ch == nil {
		return
	}
	stop := Call("stop", func() error { return dev.Stop(ctx, process.ID) })
	_ = ch.Close()
	<-stop.done
}

// never are outcomes of no call: nobody breaks the protocol, all memory is there,
// and nobody but a reset ends a life.
var never = []error{bridge.ErrFault, bridge.ErrProtocol, bridge.ErrDMA, bridge.ErrDeviceLost}

// caller makes calls until there were enough, or one ends as none may.
func (c *chaos) caller(random *rand.Rand) error {
	buf := make([]byte, 300<<10)
	for c.left.Add(-1) >= 0 {
		name, err := c.anyCall(random, buf)
		for _, n := range never {
			if errors.Is(err, n) && !(c.resets && n == bridge.ErrDeviceLost) {
				c.left.Store(0)
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		if err == nil {
			c.succeeded.Add(1)
		} else {
			c.failed.Add(1)
		}
	}
	return nil
}

// anyCall makes a call in a place.
func (c *chaos) anyCall(random *rand.Rand, buf []byte) (name string, err error) {
	ctx, cancel := context.WithTimeout(c.Ctx(), time.Duration(random.IntN(1500))*time.Microsecond)
	defer cancel()
	p := &c.places[random.IntN(len(c.places))]
	process, ch := p.get()
	switch {
	case c.resets && random.IntN(500) == 0:
		return "Reset", c.dev.Reset(c.Ctx())
	case ch == nil || random.IntN(50) == 0:
		return "open", c.reopen(p, random)
	case random.IntN(100) == 0:
		return "Stop", c.dev.Stop(ctx, process.ID)
	}
	op := chaosCalls[random.IntN(len(chaosCalls))]
	err = op.do(ctx, ch, random, buf)
	if errors.Is(err, bridge.ErrDeviceLost) {
		p.leave(ctx, c.dev)
		time.Sleep(100 * time.Microsecond) // or all calls are spent on a device that restarts
	}
	return op.name, err
}

// reopen puts a new process in a place. Its own calls have time: what they hand
// out must not be lost.
func (c *chaos) reopen(p *place, random *rand.Rand) error {
	names := []string{"loopback", "sink", "source", "hold", "gate", "expect"}
	name := names[random.IntN(len(names))]
	p.leave(c.Ctx(), c.dev)
	process, err := c.dev.Start(c.Ctx(), bridge.Program{Name: name, Targets: 2})
	if err != nil {
		return err
	}
	ch, err := c.dev.Subscribe(c.Ctx(), process.First)
	if err != nil {
		return errors.Join(err, c.dev.Stop(c.Ctx(), process.ID))
	}
	if old, was := p.set(process, ch); was != nil { // somebody was faster
		other := place{process: old, ch: was}
		other.leave(c.Ctx(), c.dev)
	}
	return nil
}

// maybe is what an extended rendezvous comes to.
func maybe(random *rand.Rand) error {
	if random.IntN(4) == 0 {
		return errRefused
	}
	return nil
}

// someOf is a part of a buffer: mostly a few pages.
func someOf(random *rand.Rand, buf []byte) []byte {
	n := random.IntN(len(buf))
	if random.IntN(8) != 0 {
		n %= 5 * abi.PageSize
	}
	from := random.IntN(len(buf) - n)
	return buf[from : from+n]
}

// chaosCalls are what a caller may do with a channel.
var chaosCalls = []struct {
	name string
	do   func(ctx context.Context, ch bridge.Channel, random *rand.Rand, buf []byte) error
}{
	{"Send", func(ctx context.Context, ch bridge.Channel, random *rand.Rand, buf []byte) error {
		return ch.Send(ctx, buf[:random.IntN(57)])
	}},
	{"Send a size", func(ctx context.Context, ch bridge.Channel, random *rand.Rand, _ []byte) error {
		return ch.Send(ctx, pattern.Words(random.Uint64N(20_000), 1)) // source and expect know what it means
	}},
	{"TrySend", func(_ context.Context, ch bridge.Channel, random *rand.Rand, buf []byte) error {
		_, err := ch.TrySend(buf[:random.IntN(57)], nil)
		return err
	}},
	{"SendInd", func(ctx context.Context, ch bridge.Channel, random *rand.Rand, buf []byte) error {
		return ch.SendInd(ctx, someOf(random, buf))
	}},
	{"Receive", func(ctx context.Context, ch bridge.Channel, random *rand.Rand, buf []byte) error {
		_, err := ch.Receive(ctx, buf[:random.IntN(57)])
		return err
	}},
	{"ReceiveFunc", func(ctx context.Context, ch bridge.Channel, random *rand.Rand, _ []byte) error {
		return ch.ReceiveFunc(ctx, func([]byte) error { return maybe(random) })
	}},
	{"TryReceive", func(_ context.Context, ch bridge.Channel, _ *rand.Rand, buf []byte) error {
		_, _, err := ch.TryReceive(buf[:56])
		return err
	}},
	{"ReceiveInd", func(ctx context.Context, ch bridge.Channel, random *rand.Rand, buf []byte) error {
		return ch.ReceiveInd(ctx, someOf(random, buf))
	}},
	{"Next and ReceiveIndFunc", func(ctx context.Context, ch bridge.Channel, random *rand.Rand, buf []byte) error {
		o, err := ch.Next(ctx)
		if err != nil || !o.Indirect || o.Size > uint64(len(buf)) {
			return err
		}
		return receiveFunc(ctx, ch, buf[:o.Size], func() error { return maybe(random) })
	}},
	{"Arm", func(_ context.Context, ch bridge.Channel, random *rand.Rand, _ []byte) error {
		half := abi.Direction(random.IntN(2))
		wake := make(chan struct{}, 1)
		err := ch.Arm(half, wake)
		defer ch.Disarm(half, wake)
		select {
		case <-wake:
		case <-time.After(time.Duration(random.IntN(1000)) * time.Microsecond):
		}
		return err
	}},
	{"Close", func(_ context.Context, ch bridge.Channel, random *rand.Rand, _ []byte) error {
		switch random.IntN(24) {
		case 0:
			return ch.CloseSend()
		case 1:
			return ch.CloseReceive()
		case 2:
			return ch.Close()
		}
		return nil
	}},
}
