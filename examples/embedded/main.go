// Command embedded has the image of its device program in itself, so that the machine that runs it
// needs no C compiler: a build machine runs "go generate && go build", for instance in CI.
package main

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/pool"
)

//go:generate go run github.com/nfcomms/nfcomms/cmd/nfctl program build ../program/device image/checksum.so

// images has the image, and a README so that this compiles before the image is there.
//
//go:embed image
var images embed.FS

func main() {
	log.SetFlags(0)
	sum, err := checksum(context.Background(), []byte("NFComms"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%08x\n", sum)
}

// checksum has the device compute a CRC-32.
func checksum(ctx context.Context, data []byte) (sum uint64, err error) {
	image, err := fs.ReadFile(images, "image/checksum.so")
	if err != nil {
		return 0, fmt.Errorf("%w: run go generate first", err)
	}
	dev, err := nfcomms.Open(ctx, "sim:")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	processes, err := pool.New(ctx, dev, pool.Options{
		Images: [][]byte{image}, Program: nfcomms.Program{Name: "checksum"}, Transfers: true,
	})
	if err != nil {
		return 0, err
	}
	defer processes.Close()
	answer := make([]byte, 16) // the size and the sum
	if _, err := processes.Do(ctx, data, answer); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(answer[8:]), nil
}
