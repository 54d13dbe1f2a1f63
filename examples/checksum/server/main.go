// Command server receives 64 MiB of a client, and answers with their checksum.
package main

import (
	"context"
	"crypto/sha256"
	"log"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func main() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "shm:nfcomms.sock")
	check(err)
	l, err := dev.Listen(ctx, "checksums")
	check(err)
	ch, err := l.Accept(ctx)
	check(err)
	data := make([]byte, 64<<20)
	_, err = ch.ReceiveInd(ctx, data) // the client's SendInd returns when this does
	check(err)
	sum := sha256.Sum256(data)
	check(ch.Send(ctx, sum[:])) // returns once the client has received it
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
