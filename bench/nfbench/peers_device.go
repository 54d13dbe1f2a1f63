package main

import (
	"context"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// onProgram makes a contender that works on the one target of a program.
func onProgram(ctx context.Context, dev *nfcomms.Device, name string, c *contender,
	run func(ctx context.Context, ch *nfcomms.Channel, n int) (time.Duration, error)) (*contender, error) {
	p, err := start(ctx, dev, name, 1)
	if err != nil {
		return nil, err
	}
	c.cpu = selfCPU
	c.run = func(ctx context.Context, n int) (time.Duration, error) { return run(ctx, p.chans[0], n) }
	c.close = func() error { return p.stop(ctx) }
	return c, nil
}

// newSend gives messages to the sink: each Send returns with the device's ack.
func newSend(ctx context.Context, dev *nfcomms.Device) (*contender, error) {
	msg := buffer(messageSize)
	c := &contender{name: nameSend, does: doesAck, size: messageSize, batch: smallBatch}
	return onProgram(ctx, dev, "sink", c, func(ctx context.Context, ch *nfcomms.Channel, n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if err := ch.Send(ctx, msg); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	})
}

// newReceive takes messages that the device's process writes one by one.
func newReceive(ctx context.Context, dev *nfcomms.Device) (*contender, error) {
	p, err := newProducer(ctx, dev)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, messageSize)
	return &contender{
		name: nameReceive, does: doesReceive, size: messageSize, batch: smallBatch, cpu: selfCPU,
		run: func(ctx context.Context, n int) (time.Duration, error) {
			if err := p.messages(ctx, n, messageSize); err != nil {
				return 0, err
			}
			start := time.Now()
			for range n {
				if _, err := p.ch.Receive(ctx, buf); err != nil {
					return 0, err
				}
			}
			return time.Since(start), nil
		},
		close: func() error { return p.stop(ctx) },
	}, nil
}

// newEcho sends a message to the loopback program and takes it back.
func newEcho(ctx context.Context, dev *nfcomms.Device) (*contender, error) {
	msg := buffer(messageSize)
	c := &contender{name: nameEcho, does: doesEcho, size: messageSize, batch: smallBatch}
	return onProgram(ctx, dev, "loopback", c, func(ctx context.Context, ch *nfcomms.Channel, n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if err := ch.Send(ctx, msg); err != nil {
				return 0, err
			}
			if _, err := ch.Receive(ctx, msg); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	})
}

// newSendInd gives transfers to the sink.
func newSendInd(ctx context.Context, dev *nfcomms.Device, size, batch int) (*contender, error) {
	return sendInd(ctx, dev, buffer(size), batch)
}

func sendInd(ctx context.Context, dev *nfcomms.Device, data []byte, batch int) (*contender, error) {
	size := len(data)
	c := &contender{name: nameSendInd, does: doesAck, size: size, batch: batch}
	return onProgram(ctx, dev, "sink", c, func(ctx context.Context, ch *nfcomms.Channel, n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if err := ch.SendInd(ctx, data, size); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	})
}

// newReceiveInd takes transfers that the device's process gives one by one.
func newReceiveInd(ctx context.Context, dev *nfcomms.Device, size, batch int) (*contender, error) {
	return receiveInd(ctx, dev, buffer(size), batch)
}

func receiveInd(ctx context.Context, dev *nfcomms.Device, data []byte, batch int) (*contender, error) {
	p, err := newProducer(ctx, dev)
	if err != nil {
		return nil, err
	}
	size := len(data)
	return &contender{
		name: nameReceiveInd, does: doesReceive, size: size, batch: batch, cpu: selfCPU,
		run: func(ctx context.Context, n int) (time.Duration, error) {
			if err := p.transfers(ctx, n, size); err != nil {
				return 0, err
			}
			start := time.Now()
			for range n {
				if _, err := p.ch.ReceiveInd(ctx, data, size); err != nil {
					return 0, err
				}
			}
			return time.Since(start), nil
		},
		close: func() error { return p.stop(ctx) },
	}, nil
}
