//go:build cgo

package nfcomms_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// One buffer over several targets: every channel carries a known chunk.
func ExampleSendStriped() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()
	var chs []*nfcomms.Channel
	for range 3 {
		chs = append(chs, start(ctx, dev, "loopback"))
	}

	data, back := make([]byte, 30_000), make([]byte, 30_000)
	data[29_999] = 42
	check(nfcomms.SendStriped(ctx, data, len(data), chs...))
	n, err := nfcomms.ReceiveStriped(ctx, back, len(back), chs...)
	check(err)
	fmt.Println(n, back[29_999])
	// Output: 30000 42
}

// Transfers over several channels at once, taken as they end.
func ExampleCompletions() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()

	var q nfcomms.Completions
	for range 3 {
		ch := start(ctx, dev, "sink")
		check(q.Add(nfcomms.SendIndCase(ch, make([]byte, 10_000)).Start(ctx)))
	}
	total := 0
	for f, err := range q.Each(ctx) {
		check(err)
		n, _ := f.Wait(ctx) // it has ended
		total += n
	}
	fmt.Println(total)
	// Output: 30000
}

// Memory that is prepared once: transfers from inside it are found by their address.
func ExampleDevice_Alloc() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()
	ch := start(ctx, dev, "loopback")

	region, err := dev.Alloc(1 << 20)
	check(err)
	defer region.Close()
	frame := region.Bytes()[4096:8192]
	frame[0] = 42
	check(ch.SendInd(ctx, frame))
	n, err := ch.ReceiveInd(ctx, region.Bytes()[:4096])
	check(err)
	fmt.Println(n, region.Bytes()[0], dev.Stats().Registered)
	// Output: 4096 42 2
}

// Several devices in one program: each has its own address, targets and epoch.
func Example_severalDevices() {
	ctx := context.Background()
	first, to := open(ctx)
	defer first.Close()
	second, err := nfcomms.Open(ctx, "sim:?managers=2")
	check(err)
	defer second.Close()
	from, err := second.Subscribe(ctx, nfcomms.Loopback)
	check(err)

	msg := []byte("through both")
	for _, ch := range []*nfcomms.Channel{to, from} {
		check(ch.Send(ctx, msg))
		n, err := ch.Receive(ctx, msg)
		check(err)
		fmt.Println(n, "bytes")
	}
	fmt.Println(first.Info().ReadManagers, second.Info().ReadManagers)
	// Output:
	// 12 bytes
	// 12 bytes
	// 8 2
}

// When the context ends, the outcome is known: delivered or withdrawn.
func Example_cancellation() {
	dev, ch := open(context.Background())
	defer dev.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()

	err := ch.Send(ctx, []byte("too late"))
	fmt.Println(errors.Is(err, nfcomms.ErrWithdrawn), errors.Is(err, context.Canceled))

	// It was not delivered, so it is safe to send it again.
	fmt.Println(ch.Send(context.Background(), []byte("again")))
	// Output:
	// true true
	// <nil>
}

// Every error says what was tried and where, and errors.Is finds the reason.
func ExampleOpError() {
	ctx := context.Background()
	_, err := nfcomms.Open(ctx, "nowhere:")
	fmt.Println(errors.Is(err, nfcomms.ErrScheme))

	dev, ch := open(ctx)
	defer dev.Close()
	err = ch.Send(ctx, make([]byte, 57))
	fmt.Println(err)
	var op *nfcomms.OpError
	if errors.As(err, &op) {
		fmt.Println(op.Op, op.Device, op.Target, op.Timeout())
	}
	err = ch.SendInd(ctx, make([]byte, 8), 16)
	fmt.Println(err)
	_, err = dev.Start(ctx, nfcomms.Program{Name: "no such program", Targets: 1})
	fmt.Println(errors.Is(err, nfcomms.ErrNoProgram))
	// Output:
	// true
	// send sim: target 1: message of 57 bytes, at most 56: too large
	// send sim: 1 false
	// send transfer sim: target 1: buffer of 8 bytes is shorter than size 16: size out of range
	// true
}

// The two ends must agree on the size of a transfer; nothing is moved if not.
func ExampleSizeError() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()
	check(ch.SendInd(ctx, make([]byte, 100)))

	_, err := ch.ReceiveInd(ctx, make([]byte, 64))
	var size *nfcomms.SizeError
	fmt.Println(errors.As(err, &size))
	fmt.Println("host", size.Host, "device", size.Device)
	// Output:
	// true
	// host 64 device 100
}

// A server hands its client over to a worker, which answers from there on; the client does not notice.
// Here all three are goroutines; on a "shm:" device they may be three processes.
func ExampleChannel_SendChannel() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()
	l, err := dev.Listen(ctx, "answers")
	check(err)
	workers, err := dev.Listen(ctx, "workers")
	check(err)

	var others sync.WaitGroup
	others.Go(func() { // the worker
		server, err := dev.Dial(ctx, "workers")
		check(err)
		client, err := server.ReceiveChannel(ctx)
		check(err)
		check(client.Send(ctx, []byte("from the worker")))
	})
	others.Go(func() { // the client
		ch, err := dev.Dial(ctx, "answers")
		check(err)
		answer := make([]byte, nfcomms.MessageSize)
		for range 2 {
			n, err := ch.Receive(ctx, answer)
			check(err)
			fmt.Println(string(answer[:n]))
		}
	})

	client, err := l.Accept(ctx)
	check(err)
	check(client.Send(ctx, []byte("from the server")))
	worker, err := workers.Accept(ctx)
	check(err)
	check(worker.SendChannel(ctx, client))
	others.Wait()
	fmt.Println(client.Send(ctx, nil))
	// Output: from the server
	// from the worker
	// send sim: "answers": sent away
}

// A camera gives each frame to a filter, which changes it in place and gives it back: no byte is copied.
// Here both are goroutines; on a "shm:" device they may be two processes.
func ExampleChannel_SendRegion() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()
	l, err := dev.Listen(ctx, "filter")
	check(err)

	var filter sync.WaitGroup
	filter.Go(func() {
		ch, err := l.Accept(ctx)
		check(err)
		frame, err := ch.ReceiveRegion(ctx)
		check(err)
		for i, b := range frame.Bytes() {
			frame.Bytes()[i] = 255 - b
		}
		check(ch.SendRegion(ctx, frame))
	})

	ch, err := dev.Dial(ctx, "filter")
	check(err)
	frame, err := dev.Alloc(3 * 640 * 480)
	check(err)
	check(ch.SendRegion(ctx, frame))
	fmt.Println(len(frame.Bytes()), ch.SendRegion(ctx, frame))
	frame, err = ch.ReceiveRegion(ctx)
	check(err)
	filter.Wait()
	fmt.Println(len(frame.Bytes()), frame.Bytes()[0])
	// Output:
	// 0 send region sim: "filter": memory that another host has: sent away
	// 921600 255
}

// One half of a channel closes, the other stays open.
func ExampleChannel_CloseSend() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()
	ch := start(ctx, dev, "source") // answers {size, seed} with a transfer

	order := binary.LittleEndian.AppendUint64(nil, 100_000)
	check(ch.Send(ctx, binary.LittleEndian.AppendUint64(order, 1)))
	check(ch.CloseSend())
	fmt.Println(errors.Is(ch.Send(ctx, order), nfcomms.ErrClosed))
	n, err := ch.ReceiveInd(ctx, make([]byte, 100_000))
	fmt.Println(n, err)
	// Output:
	// true
	// 100000 <nil>
}

// A reset ends what was pending and starts the firmware anew.
func ExampleDevice_Reset() {
	ctx := context.Background()
	dev, old := open(ctx)
	defer dev.Close()

	before := dev.Info().Epoch
	check(dev.Reset(ctx))
	fmt.Println("epochs:", dev.Info().Epoch-before)
	fmt.Println(errors.Is(old.Send(ctx, []byte("hello")), nfcomms.ErrDeviceLost))
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	check(err)
	fmt.Println(ch.Send(ctx, []byte("hello")))
	// Output:
	// epochs: 1
	// true
	// <nil>
}

// Programs run as device processes; their ports are targets.
func ExampleDevice_Start() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()

	p, err := dev.Start(ctx, nfcomms.Program{Name: "sink", First: 40, Targets: 2})
	check(err)
	ch, err := dev.Subscribe(ctx, p.First+1)
	check(err)
	check(ch.Send(ctx, []byte("to port 1")))
	check(dev.Stop(ctx, p.ID))
	fmt.Println(p.First, errors.Is(ch.Send(ctx, nil), nfcomms.ErrClosed))
	// Output: 40 true
}

// Typed channels in a select, with tries and futures: values in place of bytes.
func ExampleChan_ReceiveCase() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()

	temperatures := nfcomms.ChanOf[float64](ch)
	sent := temperatures.SendCase(21.5).Start(ctx)
	var now float64
	i, err := nfcomms.Select(ctx,
		temperatures.ReceiveCase(&now),
		nfcomms.GoReceive(ctx.Done(), nil, nil),
	)
	fmt.Println(i, now, err)
	<-sent.Done()
	there, err := temperatures.ReceiveCase(nil).Try()
	fmt.Println(there, err)
	// Output:
	// 0 21.5 <nil>
	// false <nil>
}

// Run starts a program and gives the channels to all of its ports; nothing of it
// outlives Close, or the context.
func ExampleDevice_Run() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()

	sink, err := dev.Run(ctx, nfcomms.Program{Name: "sink", Targets: 2})
	check(err)
	for port, ch := range sink.Channels {
		fmt.Println("port", port, ch.Send(ctx, []byte("hello")))
	}
	fmt.Println(sink.Close(), len(admin.Channels(dev)))
	// Output:
	// port 0 <nil>
	// port 1 <nil>
	// <nil> 0
}

// A supervisor begins anew, with new channels, whatever ends the old ones: here
// somebody resets the device.
func ExampleSupervisor() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()

	s := nfcomms.Supervisor{Programs: []nfcomms.Program{{Name: "loopback"}}}
	err = s.Run(ctx, dev, func(ctx context.Context, g *nfcomms.Generation) error {
		ch := nfcomms.ChanOf[int64](g.Instances[0].Channels[0])
		if g.Number == 2 {
			check(dev.Reset(context.Background())) // which ends ctx
		}
		if err := ch.Send(ctx, int64(g.Number)); err != nil {
			fmt.Println("generation", g.Number, "is over")
			return err // the next one begins
		}
		n, err := ch.Receive(ctx)
		fmt.Println("generation", n, "works")
		if err == nil && g.Number == 1 {
			return nfcomms.ErrClosed // as if the process had ended
		}
		return err // nil ends the supervision
	})
	fmt.Println(err)
	// Output:
	// generation 1 works
	// generation 2 is over
	// generation 3 works
	// <nil>
}
