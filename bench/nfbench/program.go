package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// program is a started device program with a channel to each of its targets.
type program struct {
	dev   *nfcomms.Device
	proc  nfcomms.Process
	chans []*nfcomms.Channel
	// behind is a process that this one alone speaks to, and that ends with it; nil: none.
	behind *program
}

// start runs a program and subscribes all of its targets.
func start(ctx context.Context, dev *nfcomms.Device, name string, targets int) (*program, error) {
	proc, err := dev.Start(ctx, nfcomms.Program{Name: name, Targets: targets})
	if err != nil {
		return nil, fmt.Errorf("start program %s with %d targets: %w", name, targets, err)
	}
	p := &program{dev: dev, proc: proc}
	for i := range targets {
		ch, err := dev.Subscribe(ctx, proc.First+nfcomms.Target(i))
		if err != nil {
			return nil, errors.Join(err, p.stop(ctx))
		}
		p.chans = append(p.chans, ch)
	}
	return p, nil
}

// stopWithin bounds the wait for a device process that is told to stop.
const stopWithin = 30 * time.Second

// stop closes the channels and ends the process, also after ctx ended.
func (p *program) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	var errs []error
	for _, ch := range p.chans {
		errs = append(errs, ch.Close())
	}
	err := p.dev.Stop(ctx, p.proc.ID)
	if p.behind != nil {
		if errors.Is(err, nfcomms.ErrInvalid) {
			err = nil // it ended with its channel
		}
		err = errors.Join(err, p.behind.stop(ctx))
	}
	return errors.Join(append(errs, err)...)
}

// producer is a channel to the program flood, which writes what it is asked
// for. Not safe for concurrent use.
type producer struct {
	*program
	ch      *nfcomms.Channel
	request [16]byte // {count, size}, little-endian; kept, so that asking allocates nothing
}

// floodTransfers in the size word asks for transfers.
const floodTransfers = 1 << 63

func newProducer(ctx context.Context, dev *nfcomms.Device) (*producer, error) {
	p, err := start(ctx, dev, "flood", 1)
	if err != nil {
		return nil, err
	}
	return &producer{program: p, ch: p.chans[0]}, nil
}

// messages asks for n messages of size bytes.
func (p *producer) messages(ctx context.Context, n, size int) error {
	return p.ask(ctx, uint64(n), uint64(size))
}

// transfers asks for n transfers of size bytes.
func (p *producer) transfers(ctx context.Context, n, size int) error {
	return p.ask(ctx, uint64(n), floodTransfers|uint64(size))
}

func (p *producer) ask(ctx context.Context, count, size uint64) error {
	binary.LittleEndian.PutUint64(p.request[:], count)
	binary.LittleEndian.PutUint64(p.request[8:], size)
	return p.ch.Send(ctx, p.request[:])
}

// blockSends has a send wait on each channel of a program that never reads. withdraw
// takes them back.
func blockSends(ctx context.Context, dev *nfcomms.Device, p *program) (withdraw func() error, err error) {
	sending, cancel := context.WithCancel(ctx)
	ended := make(chan error, len(p.chans)) // room for all, so that none waits to report
	var wg sync.WaitGroup
	for _, ch := range p.chans {
		wg.Go(func() { ended <- ch.Send(sending, []byte("wait")) })
	}
	withdraw = func() error {
		cancel()
		wg.Wait()
		close(ended)
		for e := range ended {
			if !errors.Is(e, nfcomms.ErrWithdrawn) {
				return fmt.Errorf("a send that should wait ended: %w", e)
			}
		}
		return nil
	}
	if err := untilBlocked(ctx, dev, len(p.chans), ended); err != nil {
		return nil, errors.Join(err, withdraw())
	}
	return withdraw, nil
}

// untilBlocked waits until n calls sleep.
func untilBlocked(ctx context.Context, dev *nfcomms.Device, n int, ended <-chan error) error {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for dev.Stats().Blocked < n {
		select {
		case err := <-ended:
			return fmt.Errorf("a send that should wait ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
	return nil
}
