package compare

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

// The peer process speaks one little protocol over a UNIX socket and a pair of pipes: a request of
// three words {operation, size, count}, then the messages.
const (
	WireEcho = 1 // count messages of size bytes, each sent back
	WireTake = 2 // count messages of size bytes, each answered by one word
	wireCPU  = 3 // answered by the CPU time of the process in nanoseconds
)

const wireRequest = 24 // bytes

// wireMax bounds what a request may ask the peer to hold.
const wireMax = 1 << 30

// serveWire answers connections until the listener closes.
func serveWire(l net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		wg.Go(func() {
			defer conn.Close()
			// The end of a connection is the other process's to report.
			_ = serveConn(conn)
		})
	}
}

func serveConn(conn io.ReadWriter) error {
	var request [wireRequest]byte
	var buf []byte
	for {
		if _, err := io.ReadFull(conn, request[:]); err != nil {
			return err
		}
		op := binary.LittleEndian.Uint64(request[:])
		size := binary.LittleEndian.Uint64(request[8:])
		count := binary.LittleEndian.Uint64(request[16:])
		if size > wireMax {
			return fmt.Errorf("request of %d bytes is over %d", size, wireMax)
		}
		if uint64(len(buf)) < size {
			buf = make([]byte, size)
		}
		if err := serveRequest(conn, op, count, buf[:size]); err != nil {
			return err
		}
	}
}

func serveRequest(conn io.ReadWriter, op, count uint64, buf []byte) error {
	var word [8]byte
	switch op {
	case wireCPU:
		binary.LittleEndian.PutUint64(word[:], uint64(cli.CPUTime()))
		_, err := conn.Write(word[:])
		return err
	case WireEcho, WireTake:
	default:
		return fmt.Errorf("no operation %d", op)
	}
	for range count {
		if _, err := io.ReadFull(conn, buf); err != nil {
			return err
		}
		answer := buf
		if op == WireTake {
			answer = word[:]
		}
		if _, err := conn.Write(answer); err != nil {
			return err
		}
	}
	return nil
}

// wire is the near end of the socket. Not safe for concurrent use.
type wire struct {
	conn io.ReadWriteCloser
	word [wireRequest]byte // of the last request
}

func (w *wire) request(op, size, count int) error {
	binary.LittleEndian.PutUint64(w.word[:], uint64(op))
	binary.LittleEndian.PutUint64(w.word[8:], uint64(size))
	binary.LittleEndian.PutUint64(w.word[16:], uint64(count))
	_, err := w.conn.Write(w.word[:])
	return err
}

// exchange sends n messages and waits for the answer of each.
func (w *wire) exchange(ctx context.Context, msg, answer []byte, n int) error {
	for range n {
		if _, err := w.conn.Write(msg); err != nil {
			return errors.Join(ctx.Err(), err)
		}
		if _, err := io.ReadFull(w.conn, answer); err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	return nil
}

// doesOf is what an operation of the protocol is in reports.
func doesOf(op int) string {
	if op == WireEcho {
		return DoesEcho
	}
	return DoesWord
}
