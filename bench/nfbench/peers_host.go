package main

import (
	"context"
	"sync"
	"time"
)

// Names of the contenders, as they stand in reports.
const (
	nameMemcpy     = "memcpy"
	nameChan       = "Go channel ping-pong"
	nameUnix       = "UNIX socket, other process"
	namePipe       = "os.Pipe, other process"
	nameMangos     = "mangos pair, other process"
	nameGRPC       = "gRPC stream, other process"
	nameSend       = "nfcomms Send"
	nameReceive    = "nfcomms Receive"
	nameEcho       = "nfcomms Send+Receive"
	nameSendInd    = "nfcomms SendInd"
	nameReceiveInd = "nfcomms ReceiveInd"
)

// What an operation of a contender is: like is compared with like.
const (
	doesCopy    = "copy"
	doesEcho    = "echo"
	doesWord    = "there, a word back"
	doesAck     = "there, acknowledged"
	doesReceive = "here"
)

// messageSize is the largest direct message in bytes.
const messageSize = 56

// smallBatch is the number of small messages per timed batch (N45).
const smallBatch = 100

// newMemcpy copies size bytes, to and fro, as a transfer and its echo do.
func newMemcpy(size int) *contender {
	a, b, device := buffer(size), buffer(size), buffer(size)
	calls := 0
	return &contender{
		name: nameMemcpy, does: doesCopy, size: size, batch: 1, cpu: selfCPU,
		run: func(_ context.Context, n int) (time.Duration, error) {
			start := time.Now()
			for range n {
				if calls++; calls%2 == 1 {
					copy(device, a)
				} else {
					copy(b, device)
				}
			}
			return time.Since(start), nil
		},
	}
}

// buffer returns memory whose pages are there already.
func buffer(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// newChan sends a message by value over one unbuffered channel and takes it
// back over another; a goroutine at the other end returns it.
func newChan() *contender {
	type message [messageSize]byte
	to, back := make(chan message), make(chan message)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(back)
		for m := range to {
			back <- m
		}
	})
	var m message
	return &contender{
		name: nameChan, does: doesEcho, size: messageSize, batch: smallBatch, cpu: selfCPU,
		run: func(_ context.Context, n int) (time.Duration, error) {
			start := time.Now()
			for range n {
				to <- m
				m = <-back
			}
			return time.Since(start), nil
		},
		close: func() error {
			close(to)
			wg.Wait()
			return nil
		},
	}
}

// newUnix exchanges with the other process over a UNIX stream socket.
func newUnix(c *child, op, size, batch int) *contender {
	return newWire(nameUnix, c, c.wire, op, size, batch)
}

// newGRPC exchanges with the other process over one gRPC stream.
func newGRPC(ctx context.Context, c *child, method string, size, batch int) (*contender, error) {
	peer, err := openGRPC(ctx, c.grpc, method, buffer(size))
	if err != nil {
		return nil, err
	}
	does := doesWord
	if method == grpcEcho {
		does = doesEcho
	}
	return &contender{
		name: nameGRPC, does: does, size: size, batch: batch, cpu: c.cpu,
		run: func(_ context.Context, n int) (time.Duration, error) {
			return timed(func() error { return peer.exchange(n) })
		},
		close: func() error {
			peer.close()
			return nil
		},
	}, nil
}

// smallMemcpy is the copy that stands beside small messages.
const smallMemcpy = 64 << 10
