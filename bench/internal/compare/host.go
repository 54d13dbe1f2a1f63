package compare

import (
	"context"
	"sync"
	"time"
)

// Names of the contenders, as they stand in reports.
const (
	NameMemcpy     = "memcpy"
	NameChan       = "Go channel ping-pong"
	NameUnix       = "UNIX socket, other process"
	NamePipe       = "os.Pipe, other process"
	NameMangos     = "mangos pair, other process"
	NameGRPC       = "gRPC stream, other process"
	NameSend       = "nfcomms Send"
	NameReceive    = "nfcomms Receive"
	NameEcho       = "nfcomms Send+Receive"
	NameCall       = "nfcomms Call"
	NameSendInd    = "nfcomms SendInd"
	NameReceiveInd = "nfcomms ReceiveInd"

	NameMemcpyCold     = NameMemcpy + cold
	NameSendIndCold    = NameSendInd + cold
	NameReceiveIndCold = NameReceiveInd + cold
	cold               = ", buffers in turn"

	NameFarDirect = NameSendInd + ", an emulated processor's memory in place"
	NameFarStaged = NameSendInd + ", an emulated processor's memory staged"
)

// Kinds of operation: only contenders of one kind are compared.
const (
	doesCopy    = "copy"
	DoesEcho    = "echo"
	DoesWord    = "there, a word back"
	doesAck     = "there, acknowledged"
	doesReceive = "here"
)

// MessageSize is the largest direct message in bytes.
const MessageSize = 56

// SmallBatch is the number of small messages per timed batch.
const SmallBatch = 100

// NewMemcpy copies size bytes from one buffer into another, the same ones each time.
func NewMemcpy(size int) *Contender { return memcpyOf(NameMemcpy, Buffers(size, 1), Buffers(size, 1)) }

// NewMemcpyCold copies size bytes from one of many buffers into one of as many others.
func NewMemcpyCold(size int) *Contender {
	return memcpyOf(NameMemcpyCold, Buffers(size, ColdCount(size)), Buffers(size, ColdCount(size)))
}

func memcpyOf(name string, from, to [][]byte) *Contender {
	calls := 0
	return &Contender{
		Name: name, Does: doesCopy, Size: len(from[0]), Batch: 1, CPU: SelfCPU,
		Run: func(_ context.Context, n int) (time.Duration, error) {
			start := time.Now()
			for range n {
				copy(to[calls%len(to)], from[calls%len(from)])
				calls++
			}
			return time.Since(start), nil
		},
	}
}

// coldBytes is what buffers that are used in turn have together, or more: no cache holds it, and a
// buffer is cold when its turn comes again.
const coldBytes = 64 << 20

// ColdCount returns how many buffers of a size are used in turn.
func ColdCount(size int) int { return min(max(coldBytes/max(size, 1), 4), 4096) }

// Buffers returns n buffers whose pages are there already.
func Buffers(size, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = Buffer(size)
	}
	return all
}

// Buffer returns memory whose pages are there already.
func Buffer(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// NewChan sends a message by value over one unbuffered channel and takes it
// back over another; a goroutine at the other end returns it.
func NewChan() *Contender {
	type message [MessageSize]byte
	to, back := make(chan message), make(chan message)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(back)
		for m := range to {
			back <- m
		}
	})
	var m message
	return &Contender{
		Name: NameChan, Does: DoesEcho, Size: MessageSize, Batch: SmallBatch, CPU: SelfCPU,
		Run: func(_ context.Context, n int) (time.Duration, error) {
			start := time.Now()
			for range n {
				to <- m
				m = <-back
			}
			return time.Since(start), nil
		},
		Close: func() error {
			close(to)
			wg.Wait()
			return nil
		},
	}
}

// NewUnix exchanges with the other process over a UNIX stream socket.
func NewUnix(c *Child, op, size, batch int) *Contender {
	return newWire(NameUnix, c, c.wire, op, size, batch)
}

// NewGRPC exchanges with the other process over one gRPC stream.
func NewGRPC(ctx context.Context, c *Child, method string, size, batch int) (*Contender, error) {
	peer, err := openGRPC(ctx, c.grpc, method, Buffer(size))
	if err != nil {
		return nil, err
	}
	does := DoesWord
	if method == GRPCEcho {
		does = DoesEcho
	}
	return &Contender{
		Name: NameGRPC, Does: does, Size: size, Batch: batch, CPU: c.CPU,
		Run: func(_ context.Context, n int) (time.Duration, error) {
			return Timed(func() error { return peer.exchange(n) })
		},
		Close: func() error {
			peer.Close()
			return nil
		},
	}, nil
}

// SmallMemcpy is the copy that stands beside small messages.
const SmallMemcpy = 64 << 10
