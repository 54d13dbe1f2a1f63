// Command client sends 64 MiB to a server, and compares the checksum that it answers.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func main() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "shm:nfcomms.sock")
	check(err)
	ch, err := dev.Dial(ctx, "checksums") // waits for the server
	check(err)
	data := bytes.Repeat([]byte("nfcomms!"), 8<<20)
	check(ch.SendInd(ctx, data))
	sum := make([]byte, sha256.Size)
	_, err = ch.Receive(ctx, sum)
	check(err)
	want := sha256.Sum256(data)
	fmt.Println("the server received every byte:", bytes.Equal(sum, want[:]))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
