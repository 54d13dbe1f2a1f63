// Command program loads a device program that was built outside of the
// framework, sends it files, and compares the CRC-32 it answers with Go's own.
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"os"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 {
		log.Fatal("usage: program PROGRAM.so FILE… (build the program with: make -C examples/program/device)")
	}
	if err := run(context.Background(), os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

// errDiffers means that the device's checksum is not Go's.
var errDiffers = errors.New("checksums differ")

// answer is what the device program says of a transfer.
type answer struct{ Size, CRC uint64 }

// run loads the program at image and sends it the files at paths.
func run(ctx context.Context, out io.Writer, image string, paths []string) (err error) {
	dev, err := nfcomms.Open(ctx, "sim:")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	name, err := dev.LoadFile(ctx, image)
	if err != nil {
		return err
	}
	program, err := dev.Run(ctx, nfcomms.Program{Name: name})
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := send(ctx, out, program.Channels[0], path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// send gives one file to the device and checks the answer.
func send(ctx context.Context, out io.Writer, ch *nfcomms.Channel, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := ch.SendInd(ctx, data); err != nil {
		return err
	}
	got, err := nfcomms.ChanOf[answer](ch).Receive(ctx)
	if err != nil {
		return err
	}
	want := answer{Size: uint64(len(data)), CRC: uint64(crc32.ChecksumIEEE(data))}
	if got != want {
		return fmt.Errorf("the device says %08x over %d bytes, Go %08x over %d: %w",
			got.CRC, got.Size, want.CRC, want.Size, errDiffers)
	}
	_, err = fmt.Fprintf(out, "%08x %9d %s\n", got.CRC, got.Size, path)
	return err
}
