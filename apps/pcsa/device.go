package main

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/apps/internal/spread"
	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

//go:embed device
var source embed.FS

// batchSize is the most that a consumer takes at once.
const batchSize = 256 << 10

// answer is what the handler says of the sketches.
type answer struct{ Sum, Sketches, Packets, Skipped, Shared uint64 }

// timedCount is how long the device took for a stream.
type timedCount struct{ wall, cpu time.Duration }

// device is a handler and its consumers.
type device struct {
	dev       *nfcomms.Device
	handler   *nfcomms.Instance
	consumers []*nfcomms.Instance
	full      chan []byte // batches on their way to a consumer
	free      chan []byte // buffers for more
}

// load starts the handler and as many consumers as there is room for.
func load(ctx context.Context, dev *nfcomms.Device, consumers int) (*device, error) {
	image, err := program.Build(ctx, source, program.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := dev.Load(ctx, image); err != nil {
		return nil, err
	}
	// Ended by close and not by ctx: consumers before the handler, whose memory they share.
	handler, err := dev.Run(context.WithoutCancel(ctx), nfcomms.Program{Name: "pcsa.handler"})
	if err != nil {
		return nil, err
	}
	d := &device{dev: dev, handler: handler}
	a, err := d.ask(ctx, '?')
	if err == nil && a.Shared == 0 {
		err = fmt.Errorf("the device has no room for the sketches, %d bytes of cls: %w", 4*sketches, nfcomms.ErrNoMemory)
	}
	if err == nil {
		d.consumers, err = spread.Run(ctx, dev, consumers, nfcomms.Program{Name: "pcsa.consumer", Argument: a.Shared})
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	buffers := 2 * len(d.consumers) // one is filled while the other is on its way
	d.full, d.free = make(chan []byte, buffers), make(chan []byte, buffers)
	for range buffers {
		d.free <- make([]byte, 0, batchSize)
	}
	return d, nil
}

func (d *device) close() error {
	return errors.Join(spread.Close(d.dev, d.consumers...), spread.Close(d.dev, d.handler))
}

// count streams packets to the consumers and asks the handler when all are counted.
func (d *device) count(ctx context.Context, p packets) (a answer, t timedCount, err error) {
	if _, err := d.ask(ctx, 'z'); err != nil {
		return a, t, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start, cpu := time.Now(), command.CPUTime()
	var group sync.WaitGroup
	for _, c := range d.consumers {
		group.Go(func() {
			if err := d.feed(ctx, c.Channels[0]); err != nil {
				cancel(err) // the first one stays the cause
			}
		})
	}
	err = d.fill(ctx, p)
	if err != nil {
		cancel(err)
	}
	for range d.consumers {
		select {
		case d.full <- nil: // the stream is over
		case <-ctx.Done():
		}
	}
	group.Wait()
	t = timedCount{time.Since(start), command.CPUTime() - cpu}
	if err := context.Cause(ctx); err != nil {
		return a, t, err
	}
	a, err = d.ask(ctx, '?')
	return a, t, err
}

// ask sends the handler a word and returns its answer.
func (d *device) ask(ctx context.Context, what byte) (answer, error) {
	ch := d.handler.Channels[0]
	if err := ch.Send(ctx, []byte{what}); err != nil {
		return answer{}, err
	}
	return nfcomms.ChanOf[answer](ch).Receive(ctx)
}

// fill makes batches of the packets: {u16 length, bytes} again and again.
func (d *device) fill(ctx context.Context, p packets) error {
	var batch []byte
	for {
		frame, err := p.next()
		if len(batch)+2+len(frame) > batchSize || err == io.EOF && len(batch) > 0 {
			select {
			case d.full <- batch:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			batch = nil
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case batch == nil:
			select {
			case batch = <-d.free:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			batch = batch[:0]
		}
		batch = binary.LittleEndian.AppendUint16(batch, uint16(len(frame)))
		batch = append(batch, frame...)
	}
}

// feed sends batches to one consumer until the stream is over. The message at its
// end is taken when everything before it is counted.
func (d *device) feed(ctx context.Context, ch *nfcomms.Channel) error {
	for {
		select {
		case batch := <-d.full:
			if batch == nil {
				return ch.Send(ctx, nil)
			}
			err := ch.SendInd(ctx, batch)
			if errors.Is(err, nfcomms.ErrRange) {
				return fmt.Errorf("the device has no room for a batch, %d bytes of emem for each consumer: %w", batchSize, err)
			}
			if err != nil {
				return err
			}
			d.free <- batch
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
