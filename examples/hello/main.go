// Command hello sends a number to a process on a device and takes it back. The
// device runs in this process: no root, no hardware.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func main() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback) // a device process that returns what it gets
	if err != nil {
		log.Fatal(err)
	}
	numbers := nfcomms.ChanOf[float64](ch)
	fmt.Println("the device took it:", numbers.Send(ctx, 42) == nil)
	fmt.Println(numbers.Receive(ctx))
}
