package linear

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

const (
	channels  = 4
	callers   = 3 // of each kind, of a channel
	selectors = 4 // of all channels
	clients   = channels*2*callers + selectors
)

// recorder collects a history.
type recorder struct {
	begin  time.Time
	seed   uint64
	rounds int
	next   atomic.Uint64 // message

	mu      sync.Mutex
	history []porcupine.Operation
}

// ending ends the processes of some instances, or their channels, or their device.
type ending func(context.Context, *nfcomms.Device, []*nfcomms.Instance) error

func reset(ctx context.Context, dev *nfcomms.Device, _ []*nfcomms.Instance) error {
	return dev.Reset(ctx)
}

func stop(ctx context.Context, dev *nfcomms.Device, all []*nfcomms.Instance) (err error) {
	for _, i := range all {
		err = errors.Join(err, dev.Stop(ctx, i.Process.ID))
	}
	return err
}

func closing(_ context.Context, _ *nfcomms.Device, all []*nfcomms.Instance) (err error) {
	for _, i := range all {
		err = errors.Join(err, i.Close())
	}
	return err
}

// round is the time from the start of some processes to their end.
type round struct {
	*recorder
	number    int
	instances []*nfcomms.Instance // one for each channel
	enough    func()
	// Until the end, at least; of the recorder's mutex.
	calls, effects int
}

// play has callers call processes that echo, one on each channel, and ends these under them once so
// many calls were made, and so many took effect.
func (r *recorder) play(ctx context.Context, dev *nfcomms.Device, calls, effects int, end ending) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.rounds++
	over := make(chan struct{})
	now := &round{recorder: r, number: r.rounds, enough: sync.OnceFunc(func() { close(over) }), calls: calls, effects: effects}
	for range channels {
		i, err := dev.Run(ctx, nfcomms.Program{Name: "loopback"})
		if err != nil {
			return err
		}
		now.instances = append(now.instances, i)
	}
	var all sync.WaitGroup
	errs := make([]error, clients+1)
	for id := range clients {
		c := &caller{round: now, id: id, random: rand.New(rand.NewPCG(r.seed, uint64(now.number<<16|id)))}
		all.Go(func() {
			defer now.enough()
			for !c.ended && errs[id] == nil {
				errs[id] = c.call(ctx)
			}
		})
	}
	<-over
	errs[clients] = end(ctx, dev, now.instances)
	all.Wait()
	return errors.Join(errs...)
}

// caller is one of those that call until what they call has ended.
type caller struct {
	*round
	id     int
	random *rand.Rand
	ended  bool
}

// attempt is a call before its outcome, or a case of one.
type attempt struct {
	call
	buf [8]byte
	n   int
}

// attempt begins one.
func (c *caller) attempt(channel int, send, choice bool) *attempt {
	a := &attempt{call: call{where: where{c.number, channel}, choice: choice}}
	if send {
		a.send = c.next.Add(1)
		binary.LittleEndian.PutUint64(a.buf[:], a.send)
	}
	return a
}

// call makes a call, whose context ends soon, and records it.
func (c *caller) call(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.random.IntN(int(300*time.Microsecond))))
	defer cancel()
	if c.id >= channels*2*callers {
		return c.choose(ctx)
	}
	a := c.attempt(c.id/(2*callers), c.id%2 == 0, false)
	ch := c.instances[a.channel].Channels[0]
	begin := time.Since(c.begin)
	var err error
	if a.send != 0 {
		err = ch.Send(ctx, a.buf[:])
	} else {
		a.n, err = ch.Receive(ctx, a.buf[:])
	}
	if errors.Is(err, nfcomms.ErrBusy) && a.send == 0 { // one call receives at a time
		runtime.Gosched()
		return nil
	}
	return c.record(begin, 0, err, a)
}

// choose makes a call of Select.
func (c *caller) choose(ctx context.Context) error {
	var all []*attempt
	var cases []nfcomms.Case
	for _, half := range c.random.Perm(2 * channels)[:2+c.random.IntN(3)] {
		a := c.attempt(half/2, half%2 == 0, true)
		ch := c.instances[a.channel].Channels[0]
		if a.send != 0 {
			cases = append(cases, nfcomms.SendCase(ch, a.buf[:]))
		} else {
			cases = append(cases, nfcomms.ReceiveCase(ch, a.buf[:], &a.n))
		}
		all = append(all, a)
	}
	begin := time.Since(c.begin)
	i, err := nfcomms.Select(ctx, cases...)
	return c.record(begin, i, err, all...)
}

// record records a call, of one or of several cases, that returned the index of one of them, or -1.
func (c *caller) record(begin time.Duration, index int, err error, cases ...*attempt) error {
	end := time.Since(c.begin)
	var out outcome
	switch {
	case err == nil && cases[index].send == 0 && cases[index].n != len(cases[index].buf):
		return fmt.Errorf("a message of %d bytes", cases[index].n)
	case err == nil:
		out.message = binary.LittleEndian.Uint64(cases[index].buf[:])
	case errors.Is(err, nfcomms.ErrDeviceLost):
		out.lost, c.ended = true, true
	case errors.Is(err, nfcomms.ErrClosed):
		c.ended = true
	case !errors.Is(err, nfcomms.ErrWithdrawn):
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, a := range cases {
		o := porcupine.Operation{ClientId: c.id, Input: a.call, Output: outcome{}, Call: int64(begin), Return: int64(end)}
		if i == index {
			o.Output = out
		}
		c.history = append(c.history, o)
	}
	c.calls--
	if out.message != 0 {
		c.effects--
	}
	if c.calls <= 0 && c.effects <= 0 {
		c.enough()
	}
	return nil
}
