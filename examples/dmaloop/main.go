// Command dmaloop is the test program of the stack analysis: it writes sequence numbers to a
// device, reads them back and compares, in three variants. Synchronous: one transfer at a time.
// Overlapped: blocking calls on several channels at once. Futures: calls that go on without
// their caller.
//
//	go run ./examples/dmaloop
//	go run ./examples/dmaloop --address "sim:?islands=2" --size 65536 --depth 8
//
// Exit codes: 0 every byte was right, 1 failed, 2 bad input, 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/dmaloop"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func main() { command.Main("dmaloop", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	address, o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return err
	}
	return errors.Join(loop(ctx, dev, o, stdout), dev.Close())
}

func parse(args []string, stderr io.Writer) (address string, o dmaloop.Options, err error) {
	f := command.Flags("dmaloop")
	f.StringVar(&address, "address", "sim:", "device `address`")
	f.IntVar(&o.Size, "size", 8192, "`bytes` of a transfer, a multiple of 8")
	f.IntVar(&o.Transfers, "transfers", 2000, "`number` of transfers, in each direction")
	f.IntVar(&o.Depth, "depth", 4, "`number` of transfers at once, where they overlap")
	err = command.Parse(f, args, stderr, "dmaloop [flags]    sequence numbers to a device and back, compared")
	switch {
	case err != nil:
		return address, o, err
	case o.Size < 8 || o.Size > 1<<30 || o.Size%8 != 0:
		return address, o, command.Inputf("--size %d is not a multiple of 8 up to 1 GiB", o.Size)
	case o.Transfers < 1:
		return address, o, command.Inputf("--transfers %d is not positive", o.Transfers)
	case o.Depth < 1 || o.Depth > 64:
		return address, o, command.Inputf("--depth %d is not 1 to 64", o.Depth)
	}
	return address, o, command.NoArguments(f)
}

// loop runs the variants and writes what they came to.
func loop(ctx context.Context, dev *nfcomms.Device, o dmaloop.Options, stdout io.Writer) error {
	fmt.Fprintf(stdout, "%d transfers of %d bytes there and back, every byte compared; %s device\n", o.Transfers, o.Size, dev.Info().Kind())
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "variant\tMB/s both ways\ttook\tover synchronous\t")
	base := 0.0
	for v := range dmaloop.Variants {
		r, err := dmaloop.Run(ctx, dev, v, o)
		if err != nil {
			return fmt.Errorf("%v: %w", v, err)
		}
		if v == dmaloop.Synchronous {
			base = r.Rate()
		}
		fmt.Fprintf(t, "%v\t%.0f\t%v\t%.2f\t\n", v, r.Rate()/1e6, r.Took.Round(10*time.Microsecond), r.Rate()/base)
	}
	return t.Flush()
}
