package compare

import (
	"context"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// onProgram makes a contender that works on the one target of a program.
func onProgram(ctx context.Context, dev *nfcomms.Device, name string, c *Contender,
	run func(ctx context.Context, ch *nfcomms.Channel, n int) (time.Duration, error)) (*Contender, error) {
	p, err := Start(ctx, dev, name, 1)
	if err != nil {
		return nil, err
	}
	c.CPU = SelfCPU
	c.Run = func(ctx context.Context, n int) (time.Duration, error) { return run(ctx, p.Chans[0], n) }
	c.Close = func() error { return p.Stop(ctx) }
	return c, nil
}

// NewSend gives messages to the sink: each Send returns with the device's ack.
func NewSend(ctx context.Context, dev *nfcomms.Device) (*Contender, error) {
	msg := Buffer(MessageSize)
	c := &Contender{Name: NameSend, Does: doesAck, Size: MessageSize, Batch: SmallBatch}
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

// NewReceive takes messages that the device's process writes one by one.
func NewReceive(ctx context.Context, dev *nfcomms.Device) (*Contender, error) {
	p, err := NewProducer(ctx, dev)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, MessageSize)
	return &Contender{
		Name: NameReceive, Does: doesReceive, Size: MessageSize, Batch: SmallBatch, CPU: SelfCPU,
		Run: func(ctx context.Context, n int) (time.Duration, error) {
			if err := p.Messages(ctx, n, MessageSize); err != nil {
				return 0, err
			}
			start := time.Now()
			for range n {
				if _, err := p.Ch.Receive(ctx, buf); err != nil {
					return 0, err
				}
			}
			return time.Since(start), nil
		},
		Close: func() error { return p.Stop(ctx) },
	}, nil
}

// NewEcho sends a message to the loopback program and takes it back.
func NewEcho(ctx context.Context, dev *nfcomms.Device) (*Contender, error) {
	msg := Buffer(MessageSize)
	c := &Contender{Name: NameEcho, Does: DoesEcho, Size: MessageSize, Batch: SmallBatch}
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

// NewCall asks the loopback program, which answers with the question.
func NewCall(ctx context.Context, dev *nfcomms.Device) (*Contender, error) {
	msg := Buffer(MessageSize)
	c := &Contender{Name: NameCall, Does: DoesEcho, Size: MessageSize, Batch: SmallBatch}
	return onProgram(ctx, dev, "loopback", c, func(ctx context.Context, ch *nfcomms.Channel, n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if _, err := ch.Call(ctx, msg, msg); err != nil {
				return 0, err
			}
		}
		return time.Since(start), nil
	})
}

// NewSendInd gives transfers to the sink.
func NewSendInd(ctx context.Context, dev *nfcomms.Device, size, batch int) (*Contender, error) {
	return SendInd(ctx, dev, NameSendInd, batch, Buffer(size))
}

// SendInd gives transfers of buffers to the sink, one after the other.
func SendInd(ctx context.Context, dev *nfcomms.Device, name string, batch int, buffers ...[]byte) (*Contender, error) {
	size, calls := len(buffers[0]), 0
	c := &Contender{Name: name, Does: doesAck, Size: size, Batch: batch}
	return onProgram(ctx, dev, "sink", c, func(ctx context.Context, ch *nfcomms.Channel, n int) (time.Duration, error) {
		start := time.Now()
		for range n {
			if err := ch.SendInd(ctx, buffers[calls%len(buffers)], size); err != nil {
				return 0, err
			}
			calls++
		}
		return time.Since(start), nil
	})
}

// NewReceiveInd takes transfers that the device's process gives one by one.
func NewReceiveInd(ctx context.Context, dev *nfcomms.Device, size, batch int) (*Contender, error) {
	return ReceiveInd(ctx, dev, NameReceiveInd, batch, Buffer(size))
}

// ReceiveInd takes transfers into buffers, one after the other.
func ReceiveInd(ctx context.Context, dev *nfcomms.Device, name string, batch int, buffers ...[]byte) (*Contender, error) {
	p, err := NewProducer(ctx, dev)
	if err != nil {
		return nil, err
	}
	size, calls := len(buffers[0]), 0
	return &Contender{
		Name: name, Does: doesReceive, Size: size, Batch: batch, CPU: SelfCPU,
		Run: func(ctx context.Context, n int) (time.Duration, error) {
			if err := p.Transfers(ctx, n, size); err != nil {
				return 0, err
			}
			start := time.Now()
			for range n {
				if _, err := p.Ch.ReceiveInd(ctx, buffers[calls%len(buffers)], size); err != nil {
					return 0, err
				}
				calls++
			}
			return time.Since(start), nil
		},
		Close: func() error { return p.Stop(ctx) },
	}, nil
}
