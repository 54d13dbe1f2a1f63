package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Names of the sides that only a crowd has.
const (
	namePairs = "Go channel pairs"
	nameUnixN = "UNIX sockets, an answer each"
)

// crowdCall is a kind of call of which n callers are made.
type crowdCall struct {
	call string
	size int
	// ready makes n callers.
	ready func(ctx context.Context, dev *nfcomms.Device, s *crowdSide, shape string, n int) error
	// most is how many bytes all callers together may have, 0: any number.
	most int
}

// crowdMemory bounds the memory of all callers, and what the device needs for as
// many transfers at once.
const crowdMemory = 64 << 20

// crowdSockets bounds the UNIX sockets: each takes two descriptors.
const crowdSockets = 1000

// crowdCalls lists what is measured; the Go channel pairs come first.
func crowdCalls(sizes []int) []crowdCall {
	calls := []crowdCall{
		{call: namePairs, size: compare.MessageSize, ready: readyPairs},
		{call: nameUnixN, size: compare.MessageSize, ready: readySockets, most: crowdSockets * compare.MessageSize},
		{call: compare.NameSend, size: compare.MessageSize, ready: readySends},
		{call: compare.NameReceive, size: compare.MessageSize, ready: readyReceives},
	}
	for _, size := range sizes {
		calls = append(calls,
			crowdCall{call: compare.NameSendInd, size: size, ready: readySendInds, most: crowdMemory},
			crowdCall{call: compare.NameReceiveInd, size: size, ready: readyReceiveInds, most: crowdMemory})
	}
	return calls
}

// side makes n callers, or returns why there cannot be so many.
func (c crowdCall) side(ctx context.Context, dev *nfcomms.Device, shape string, n int) (*crowdSide, error) {
	s := &crowdSide{call: c.call, size: c.size, samples: stat.NewRecorder(), ops: make([]int, n)}
	if c.most > 0 && n*c.size > c.most {
		s.skipped = fmt.Sprintf("over %s in all", cli.SizeText(c.most))
		return s, nil
	}
	if err := c.ready(ctx, dev, s, shape, n); ctx.Err() != nil {
		return nil, fmt.Errorf("%s, %s: %w", c.call, cli.SizeText(c.size), err)
	} else if err != nil {
		s.skipped, s.close = err.Error(), nil
	}
	return s, nil
}

// readyPairs: each caller sends over an unbuffered channel to a goroutine of its own.
func readyPairs(_ context.Context, _ *nfcomms.Device, s *crowdSide, _ string, n int) error {
	type message [compare.MessageSize]byte
	var wg sync.WaitGroup
	var ends []chan message
	for range n {
		to := make(chan message)
		ends = append(ends, to)
		wg.Go(func() {
			for range to {
			}
		})
		var m message
		s.callers = append(s.callers, func(context.Context) error {
			to <- m
			return nil
		})
	}
	s.close = func() error {
		for _, to := range ends {
			close(to)
		}
		wg.Wait()
		return nil
	}
	return nil
}

// readySockets: each caller writes to a UNIX socket and waits for one byte from a
// goroutine at its other end.
func readySockets(_ context.Context, _ *nfcomms.Device, s *crowdSide, _ string, n int) error {
	var wg sync.WaitGroup
	var ends []io.Closer
	s.close = func() error {
		var errs []error
		for _, c := range ends {
			errs = append(errs, c.Close())
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	for range n {
		near, far, err := socketPair()
		if err != nil {
			return errors.Join(err, s.close())
		}
		ends = append(ends, near, far)
		wg.Go(func() {
			var m [compare.MessageSize]byte
			for {
				if _, err := io.ReadFull(far, m[:]); err != nil {
					return
				}
				if _, err := far.Write(m[:1]); err != nil {
					return
				}
			}
		})
		m := compare.Buffer(compare.MessageSize)
		var answer [1]byte
		s.callers = append(s.callers, func(context.Context) error {
			if _, err := near.Write(m); err != nil {
				return err
			}
			_, err := io.ReadFull(near, answer[:])
			return err
		})
	}
	return nil
}

// socketPair returns two ends of a UNIX socket, which wait in the runtime's poller.
func socketPair() (near, far net.Conn, err error) {
	a, b, err := compare.SocketPair()
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	defer b.Close()
	if near, err = net.FileConn(a); err != nil {
		return nil, nil, err
	}
	if far, err = net.FileConn(b); err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	return near, far, nil
}

// sinkChannels starts what takes: a sink for each channel, or one with n ports.
func sinkChannels(ctx context.Context, dev *nfcomms.Device, s *crowdSide, shape string, n int) ([]*nfcomms.Channel, error) {
	each := 1
	if shape == shapePorts {
		each = n
	}
	return programs(ctx, dev, s, "sink", n/each, each)
}

// programs starts a number of processes with so many ports each, which the side's
// close stops.
func programs(ctx context.Context, dev *nfcomms.Device, s *crowdSide, name string, number, ports int) ([]*nfcomms.Channel, error) {
	var all []*compare.Program
	var chans []*nfcomms.Channel
	s.close = func() error {
		var errs []error
		for _, p := range all {
			errs = append(errs, p.Stop(ctx))
		}
		return errors.Join(errs...)
	}
	for range number {
		p, err := compare.Start(ctx, dev, name, ports)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		all, chans = append(all, p), append(chans, p.Chans...)
	}
	return chans, nil
}

func readySends(ctx context.Context, dev *nfcomms.Device, s *crowdSide, shape string, n int) error {
	chans, err := sinkChannels(ctx, dev, s, shape, n)
	for _, ch := range chans {
		m := compare.Buffer(compare.MessageSize)
		s.callers = append(s.callers, func(ctx context.Context) error { return ch.Send(ctx, m) })
	}
	return err
}

func readySendInds(ctx context.Context, dev *nfcomms.Device, s *crowdSide, shape string, n int) error {
	chans, err := sinkChannels(ctx, dev, s, shape, n)
	for _, ch := range chans {
		b := compare.Buffer(s.size)
		s.callers = append(s.callers, func(ctx context.Context) error { return ch.SendInd(ctx, b, s.size) })
	}
	return err
}

func readyReceives(ctx context.Context, dev *nfcomms.Device, s *crowdSide, _ string, n int) error {
	chans, err := floods(ctx, dev, s, n, uint64(compare.MessageSize))
	for _, ch := range chans {
		m := compare.Buffer(compare.MessageSize)
		s.callers = append(s.callers, func(ctx context.Context) error {
			_, err := ch.Receive(ctx, m)
			return err
		})
	}
	return err
}

func readyReceiveInds(ctx context.Context, dev *nfcomms.Device, s *crowdSide, _ string, n int) error {
	chans, err := floods(ctx, dev, s, n, compare.FloodTransfers|uint64(s.size))
	for _, ch := range chans {
		b := compare.Buffer(s.size)
		s.callers = append(s.callers, func(ctx context.Context) error {
			_, err := ch.ReceiveInd(ctx, b, s.size)
			return err
		})
	}
	return err
}

// floods starts n processes that write without end, until their channel closes.
func floods(ctx context.Context, dev *nfcomms.Device, s *crowdSide, n int, what uint64) ([]*nfcomms.Channel, error) {
	chans, err := programs(ctx, dev, s, "flood", n, 1)
	for _, ch := range chans {
		p := compare.Producer{Ch: ch}
		if err = p.Ask(ctx, math.MaxInt64, what); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return chans, err
}
