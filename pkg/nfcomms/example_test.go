//go:build cgo

package nfcomms_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// check keeps the examples short; a program would handle the error.
func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

// open returns a device and the channel to its loopback target, which sends
// every message and every transfer back.
func open(ctx context.Context) (*nfcomms.Device, *nfcomms.Channel) {
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	check(err)
	return dev, ch
}

// start runs a program and returns the channel to its port 0.
func start(ctx context.Context, dev *nfcomms.Device, program string) *nfcomms.Channel {
	p, err := dev.Start(ctx, nfcomms.Program{Name: program, Targets: 1})
	check(err)
	ch, err := dev.Subscribe(ctx, p.First)
	check(err)
	return ch
}

// A device process returns the message that it got.
func Example() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	check(err)

	check(ch.Send(ctx, []byte("hello, device"))) // the device has it
	buf := make([]byte, nfcomms.MessageSize)
	n, err := ch.Receive(ctx, buf)
	check(err)
	fmt.Println(string(buf[:n]))
	// Output: hello, device
}

// Bulk data of any static type: the device's DMA engine reads it in place.
func ExampleChannel_SendInd() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()

	samples := make([]float32, 1_000_000)
	samples[999_999] = 0.5
	check(ch.SendInd(ctx, samples))

	var back [1_000_000]float32
	n, err := ch.ReceiveInd(ctx, &back)
	check(err)
	fmt.Println(n, "bytes, the last sample is", back[999_999])

	// With a size, in bytes, only the first ones of an object are sent.
	check(ch.SendInd(ctx, samples, 400))
	n, err = ch.ReceiveInd(ctx, back[:100])
	fmt.Println(n, err)
	// Output:
	// 4000000 bytes, the last sample is 0.5
	// 400 <nil>
}

// Next returns the size of a transfer before anybody takes it.
func ExampleChannel_ReceiveInd() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()
	check(ch.SendInd(ctx, "a string is sent as its bytes"))

	offer, err := ch.Next(ctx)
	check(err)
	buf := make([]byte, offer.Size)
	_, err = ch.ReceiveInd(ctx, buf)
	check(err)
	fmt.Printf("%s (transfer: %v)\n", buf, offer.Indirect)
	// Output: a string is sent as its bytes (transfer: true)
}

// A typed channel carries values without pointers; large ones travel as
// transfers by themselves.
func ExampleChanOf() {
	type Order struct {
		ID     uint64
		Amount int32
		Symbol [8]byte
	}
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()

	orders := nfcomms.ChanOf[Order](ch)
	check(orders.Err())
	check(orders.Send(ctx, Order{ID: 7, Amount: -3, Symbol: [8]byte{'N', 'F', 'C'}}))
	o, err := orders.Receive(ctx)
	check(err)
	fmt.Printf("%d %d %s\n", o.ID, o.Amount, o.Symbol[:3])

	matrices := nfcomms.ChanOf[[64][64]float64](ch)
	check(matrices.Send(ctx, [64][64]float64{63: {63: 2.5}}))
	m, err := matrices.Receive(ctx)
	check(err)
	fmt.Println(m[63][63])
	// Output:
	// 7 -3 NFC
	// 2.5
}

// A type with pointers in it is refused, by the name of the field.
func ExampleTypeError() {
	type Customer struct {
		Age  uint8
		Name string
	}
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()

	err := ch.SendInd(ctx, &Customer{Name: "Ada"})
	var bad *nfcomms.TypeError
	fmt.Println(errors.As(err, &bad), errors.Is(err, nfcomms.ErrPointers))
	fmt.Println(bad)
	// Output:
	// true true
	// Customer.Name is a string: type holds pointers: use an array of bytes, such as [32]byte
}

// A device channel and a native Go channel in one select.
func ExampleSelect() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()

	quit := make(chan struct{})
	buf, n := make([]byte, nfcomms.MessageSize), 0
	check(ch.Send(ctx, []byte("news")))
	for range 2 {
		i, err := nfcomms.Select(ctx,
			nfcomms.ReceiveCase(ch, buf, &n),
			nfcomms.GoReceive(quit, nil, nil),
		)
		check(err)
		switch i {
		case 0:
			fmt.Printf("the device says %s\n", buf[:n])
			close(quit)
		case 1:
			fmt.Println("quit")
		}
	}
	// Output:
	// the device says news
	// quit
}

// A default case makes Select a question.
func ExampleDefault() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()

	i, err := nfcomms.Select(ctx,
		nfcomms.ReceiveCase(ch, make([]byte, nfcomms.MessageSize), nil),
		nfcomms.Default(),
	)
	fmt.Println(i, err)
	// Output: 1 <nil>
}

// Futures run without their caller, in the order of the calls.
func ExampleCase_Start() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()

	out, back := []byte("moved in the background"), make([]byte, 23)
	sent := nfcomms.SendIndCase(ch, out).Start(ctx) // out is not ours until Done
	received := nfcomms.ReceiveIndCase(ch, back).Start(ctx)

	n, err := received.Wait(ctx)
	check(err)
	<-sent.Done()
	fmt.Println(n, string(back))
	// Output: 23 moved in the background
}

// A cancelled future has an exact outcome: here nobody took the message.
func ExampleFuture_Cancel() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()
	ch := start(ctx, dev, "hold") // it never reads

	f := nfcomms.SendCase(ch, []byte("anybody there?")).Start(ctx)
	f.Cancel()
	_, err = f.Wait(ctx)
	fmt.Println(errors.Is(err, nfcomms.ErrWithdrawn))
	// Output: true
}

// In an extended rendezvous the device's process waits until the receiver has
// worked on the message.
func ExampleChannel_ReceiveFunc() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()
	check(ch.Send(ctx, []byte("precious")))

	full := errors.New("no room for it now")
	err := ch.ReceiveFunc(ctx, func([]byte) error { return full })
	fmt.Println(errors.Is(err, full), "- and it stays offered")
	check(ch.ReceiveFunc(ctx, func(msg []byte) error {
		fmt.Printf("%s, in place\n", msg)
		return nil // only now the device continues
	}))
	// Output:
	// true - and it stays offered
	// precious, in place
}

// Views of memory of the framework: nothing is copied on the host.
func ExampleChannel_SendIndFunc() {
	ctx := context.Background()
	dev, ch := open(ctx)
	defer dev.Close()

	check(ch.SendIndFunc(ctx, 1<<20, func(data []byte) error {
		for i := range data {
			data[i] = byte(i)
		}
		return nil
	}))
	sum := 0
	check(ch.ReceiveIndFunc(ctx, 1<<20, func(data []byte) error {
		for _, b := range data {
			sum += int(b)
		}
		return nil // nil commits the transfer, an error aborts it
	}))
	fmt.Println(sum)
	// Output: 133693440
}
