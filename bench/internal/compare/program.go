package compare

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Program is a started device program with a channel to each of its targets.
type Program struct {
	Dev   *nfcomms.Device
	Proc  nfcomms.Process
	Chans []*nfcomms.Channel
	// behind is a process that this one alone speaks to, and that ends with it; nil: none.
	Behind *Program
}

// Start runs a program and subscribes all of its targets.
func Start(ctx context.Context, dev *nfcomms.Device, name string, targets int) (*Program, error) {
	proc, err := dev.Start(ctx, nfcomms.Program{Name: name, Targets: targets})
	if err != nil {
		return nil, fmt.Errorf("start program %s with %d targets: %w", name, targets, err)
	}
	p := &Program{Dev: dev, Proc: proc}
	for i := range targets {
		ch, err := dev.Subscribe(ctx, proc.First+nfcomms.Target(i))
		if err != nil {
			return nil, errors.Join(err, p.Stop(ctx))
		}
		p.Chans = append(p.Chans, ch)
	}
	return p, nil
}

// stopWithin bounds the wait for a device process that is told to stop.
const stopWithin = 30 * time.Second

// Stop closes the channels and ends the process, also after ctx ended.
func (p *Program) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	var errs []error
	for _, ch := range p.Chans {
		errs = append(errs, ch.Close())
	}
	err := p.Dev.Stop(ctx, p.Proc.ID)
	if p.Behind != nil {
		if errors.Is(err, nfcomms.ErrInvalid) {
			err = nil // it ended with its channel
		}
		err = errors.Join(err, p.Behind.Stop(ctx))
	}
	return errors.Join(append(errs, err)...)
}

// Producer is a channel to the program flood, which writes what it is asked
// for. Not safe for concurrent use.
type Producer struct {
	*Program
	Ch      *nfcomms.Channel
	request [16]byte // {count, size}, little-endian; kept, so that asking allocates nothing
}

// FloodTransfers in the size word asks for transfers.
const FloodTransfers = 1 << 63

// NewProducer starts a process that writes what it is asked for.
func NewProducer(ctx context.Context, dev *nfcomms.Device) (*Producer, error) {
	p, err := Start(ctx, dev, "flood", 1)
	if err != nil {
		return nil, err
	}
	return &Producer{Program: p, Ch: p.Chans[0]}, nil
}

// Messages asks for n messages of size bytes.
func (p *Producer) Messages(ctx context.Context, n, size int) error {
	return p.Ask(ctx, uint64(n), uint64(size))
}

// Transfers asks for n transfers of size bytes.
func (p *Producer) Transfers(ctx context.Context, n, size int) error {
	return p.Ask(ctx, uint64(n), FloodTransfers|uint64(size))
}

// Ask has the process write so many times; size is in bytes, with [FloodTransfers] of transfers.
func (p *Producer) Ask(ctx context.Context, count, size uint64) error {
	binary.LittleEndian.PutUint64(p.request[:], count)
	binary.LittleEndian.PutUint64(p.request[8:], size)
	return p.Ch.Send(ctx, p.request[:])
}

// BlockSends has a send wait on each channel of a program that never reads. withdraw
// takes them back.
func BlockSends(ctx context.Context, dev *nfcomms.Device, p *Program) (withdraw func() error, err error) {
	sending, cancel := context.WithCancel(ctx)
	ended := make(chan error, len(p.Chans)) // room for all, so that none waits to report
	var wg sync.WaitGroup
	for _, ch := range p.Chans {
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
	if err := UntilBlocked(ctx, dev, len(p.Chans), ended); err != nil {
		return nil, errors.Join(err, withdraw())
	}
	return withdraw, nil
}

// UntilBlocked waits until n calls sleep.
func UntilBlocked(ctx context.Context, dev *nfcomms.Device, n int, ended <-chan error) error {
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
