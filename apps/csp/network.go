package main

import (
	"context"
	"embed"
	"errors"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// channel connects two processes. Each may be on the host or on the device: Send and
// Receive are a rendezvous of the two in any case, and the processes cannot tell.
type channel[T any] struct {
	native  chan T
	to      *nfcomms.Channel // leads to the consumer, where that is on the device
	from    *nfcomms.Channel // comes from the producer, where that is on the device
	closing sync.Once
}

func newChannel[T any]() *channel[T] { return &channel[T]{native: make(chan T)} }

// channels makes n of them.
func channels[T any](n int) (list []*channel[T]) {
	for range n {
		list = append(list, newChannel[T]())
	}
	return list
}

// Send gives v to the consumer.
func (c *channel[T]) Send(ctx context.Context, v T) error {
	if c.to != nil {
		return nfcomms.ChanOf[T](c.to).Send(ctx, v)
	}
	select {
	case c.native <- v:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Receive takes a value from the producer; io.EOF once that has ended.
func (c *channel[T]) Receive(ctx context.Context) (v T, err error) {
	if c.from != nil {
		v, err = nfcomms.ChanOf[T](c.from).Receive(ctx)
		return v, orEnd(err)
	}
	_, v, err = alternative(ctx, c)
	return v, err
}

// Each calls fn with every value until the producer has ended.
func (c *channel[T]) Each(ctx context.Context, fn func(v T) error) error {
	v, err := c.Receive(ctx)
	for ; err == nil; v, err = c.Receive(ctx) {
		if err := fn(v); err != nil {
			return err
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// Close is the end of the producer.
func (c *channel[T]) Close() error {
	if c.to != nil {
		return c.to.CloseSend()
	}
	c.closing.Do(func() { close(c.native) })
	return nil
}

// orEnd makes io.EOF of the end of a device process.
func orEnd(err error) error {
	if errors.Is(err, nfcomms.ErrClosed) {
		return io.EOF
	}
	return err
}

// alternative is ALT: it takes a value from any of the channels and returns which.
// io.EOF belongs to that channel, too.
func alternative[T any](ctx context.Context, list ...*channel[T]) (i int, v T, err error) {
	values, oks, cases := make([]T, len(list)), make([]bool, len(list)), []nfcomms.Case{}
	for k, c := range list {
		if oks[k] = c.from != nil; oks[k] {
			cases = append(cases, nfcomms.ChanOf[T](c.from).ReceiveCase(&values[k]))
		} else {
			cases = append(cases, nfcomms.GoReceive(c.native, &values[k], &oks[k]))
		}
	}
	i, err = nfcomms.Select(ctx, cases...)
	switch {
	case err != nil:
		return i, v, orEnd(err)
	case !oks[i]:
		return i, v, io.EOF
	}
	return i, values[i], nil
}

// port is an end of a channel that a process has.
type port interface {
	// bind sets which channel of the device the end is.
	bind(ch *nfcomms.Channel)
	// forward runs while both ends are on the device: the host hands on.
	forward() func(ctx context.Context) error
	io.Closer
}

type in[T any] struct{ *channel[T] }

func (p in[T]) bind(ch *nfcomms.Channel)             { p.to = ch }
func (p in[T]) forward() func(context.Context) error { return nil }
func (p in[T]) Close() error                         { return nil } // a consumer closes nothing

type out[T any] struct{ *channel[T] }

func (p out[T]) bind(ch *nfcomms.Channel) { p.from = ch }

// forward is an extended rendezvous: the producer is held until the consumer has it.
func (p out[T]) forward() func(context.Context) error {
	if p.from == nil || p.to == nil {
		return nil
	}
	return func(ctx context.Context) (err error) {
		for err == nil {
			err = p.from.ReceiveFunc(ctx, func(msg []byte) error { return p.to.Send(ctx, msg) })
		}
		if errors.Is(err, nfcomms.ErrClosed) { // either end has ended
			return p.to.CloseSend()
		}
		return err
	}
}

// ports are the ends that a process has, in the order of its parameters.
type ports []port

// process is one of a network: a goroutine or a device process.
type process struct {
	program  string // empty: it runs on the host only
	argument uint64
	ports    ports
	host     func(ctx context.Context) error
	onDevice bool
}

// network is a parallel command.
type network struct {
	place     placement
	processes []*process
	placed    int // processes that are not users
}

// placement is where the processes of a network run.
type placement string

// Placements, as --on has them.
const (
	onHost   placement = "host"
	onDevice placement = "device"
	onBoth   placement = "both" // in turn
)

// process adds a process, which runs where the placement has it.
func (n *network) process(program string, argument uint64, p ports, host func(ctx context.Context) error) {
	device := n.place == onDevice || n.place == onBoth && n.placed%2 == 0
	n.placed++
	n.processes = append(n.processes, &process{program, argument, p, host, device})
}

// user adds a process that gives the network its input or takes its output.
func (n *network) user(host func(ctx context.Context) error, outs ...port) {
	n.processes = append(n.processes, &process{ports: outs, host: host})
}

// run runs all processes until every one has ended. The first error ends them.
func (n *network) run(ctx context.Context, dev *nfcomms.Device) (err error) {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range n.processes {
		if !p.onDevice {
			continue
		}
		instance, err := dev.Run(ctx, nfcomms.Program{Name: p.program, Targets: len(p.ports), Argument: p.argument})
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		defer func() { err = errors.Join(err, instance.Close()) }()
		for i, ch := range instance.Channels {
			p.ports[i].bind(ch)
		}
	}
	for _, p := range n.processes {
		if !p.onDevice {
			group.Go(func() error { return errors.Join(p.host(ctx), p.close()) })
			continue
		}
		for _, end := range p.ports {
			if forward := end.forward(); forward != nil {
				group.Go(func() error { return forward(ctx) })
			}
		}
	}
	return group.Wait()
}

// close ends the channels that a process produces.
func (p *process) close() (err error) {
	for _, end := range p.ports {
		err = errors.Join(err, end.Close())
	}
	return err
}

//go:embed device
var source embed.FS

// load gives the device its processes.
func load(ctx context.Context, dev *nfcomms.Device) error {
	image, err := program.Build(ctx, source, program.Options{})
	if err != nil {
		return err
	}
	_, err = dev.Load(ctx, image)
	return err
}
