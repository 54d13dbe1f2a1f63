//go:build unix

package compare

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// PacketWriter is the end of a stream of packets that fills them.
type PacketWriter interface {
	// Reserve returns where the next packet is filled.
	Reserve() ([]byte, error)
	// Commit hands its first n bytes over.
	Commit(ctx context.Context, n int) error
	// Finish ends the stream, in a way that loses nothing.
	Finish(ctx context.Context) error
}

// PacketReader is the other end.
type PacketReader interface {
	// Next returns a packet, io.EOF after the last; Release is through with it.
	Next(ctx context.Context) ([]byte, error)
	Release()
	Close() error
}

// FirstInherited is the descriptor of the first file that a process leaves its child.
const FirstInherited = 3

// Inherited is a file that the process before this one left; it waits in the runtime's poller.
func Inherited(fd int) (*os.File, error) {
	if err := syscall.SetNonblock(fd, true); err != nil { // else a thread waits in each call
		return nil, fmt.Errorf("file that was left open: %w", err)
	}
	return os.NewFile(uintptr(fd), "inherited"), nil
}

// SocketPair returns two ends of a UNIX stream socket without a name.
func SocketPair() (near, far *os.File, err error) {
	syscall.ForkLock.RLock() // no child is started that has them by chance
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket"), nil
}

// NewStreamWriter writes packets of one size into a pipe or a socket, so many in a call.
func NewStreamWriter(to *os.File, size, batch int) PacketWriter {
	return &streamWriter{to, bufio.NewWriterSize(to, batch*size), make([]byte, size)}
}

// NewStreamReader reads what a writer of NewStreamWriter writes.
func NewStreamReader(from *os.File, size, batch int) PacketReader {
	return &streamReader{from, bufio.NewReaderSize(from, batch*size), make([]byte, size)}
}

// streamWriter writes packets of one size into a pipe or a socket, a batch in a call.
type streamWriter struct {
	to     *os.File
	batch  *bufio.Writer // what is as large as its buffer goes past it
	packet []byte
}

func (o *streamWriter) Reserve() ([]byte, error) { return o.packet, nil }

func (o *streamWriter) Commit(_ context.Context, n int) error {
	_, err := o.batch.Write(o.packet[:n])
	return err
}

func (o *streamWriter) Finish(context.Context) error {
	return errors.Join(o.batch.Flush(), o.to.Close())
}

type streamReader struct {
	from   *os.File
	batch  *bufio.Reader
	packet []byte
}

func (i *streamReader) Next(context.Context) ([]byte, error) {
	_, err := io.ReadFull(i.batch, i.packet)
	return i.packet, err
}

func (i *streamReader) Release() {}

func (i *streamReader) Close() error { return i.from.Close() }
