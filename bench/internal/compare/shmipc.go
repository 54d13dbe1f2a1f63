//go:build linux

package compare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/cloudwego/shmipc-go"
)

// shmipcConfig keeps the library's output off what the children print.
func shmipcConfig(c *shmipc.Config) *shmipc.Config {
	shmipc.SetLogLevel(5) // nothing
	c.LogOutput = io.Discard
	c.MemMapType = shmipc.MemMapTypeMemFd
	return c
}

type shmipcWriter struct {
	m     *shmipc.SessionManager
	s     *shmipc.Stream
	n     int
	batch int
	count int // packets so far
}

// DialShmipc writes packets of one size through the memory of shmipc-go, so many at once. It waits
// for the reader to listen at the socket.
func DialShmipc(ctx context.Context, socket string, size, batch int) (PacketWriter, error) {
	c := shmipc.DefaultSessionManagerConfig()
	shmipcConfig(c.Config)
	c.Network, c.Address, c.SessionNum = "unix", socket, 1
	m, err := shmipc.NewSessionManager(c)
	for errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) { // it is there before it is listened on
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
		m, err = shmipc.NewSessionManager(c)
	}
	if err != nil {
		return nil, fmt.Errorf("shmipc: %w", err)
	}
	s, err := m.GetStream()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shmipc: %w", err), m.Close())
	}
	return &shmipcWriter{m: m, s: s, n: size, batch: batch}, nil
}

func (o *shmipcWriter) Reserve() ([]byte, error) { return o.s.BufferWriter().Reserve(o.n) }

func (o *shmipcWriter) Commit(context.Context, int) error {
	if o.count++; o.count%o.batch > 0 {
		return nil
	}
	return o.s.Flush(false)
}

// Finish waits for the receiver's word: the end of a session is not ordered after
// what was sent.
func (o *shmipcWriter) Finish(context.Context) error {
	err := o.s.BufferWriter().WriteString(shmipcEnd)
	if err == nil {
		err = o.s.Flush(false)
	}
	if err == nil {
		_, err = o.s.BufferReader().ReadBytes(len(shmipcEnd))
	}
	return errors.Join(err, o.s.Close(), o.m.Close())
}

// shmipcEnd ends a stream, and answers that.
const shmipcEnd = "hmf-end."

type shmipcReader struct {
	session *shmipc.Session
	s       *shmipc.Stream
	n       int
}

// ServeShmipc reads what the writer of DialShmipc writes.
func ServeShmipc(socket string, size int) (PacketReader, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	conn, err := l.Accept()
	if err != nil {
		return nil, err
	}
	session, err := shmipc.Server(conn, shmipcConfig(shmipc.DefaultConfig()))
	if err != nil {
		return nil, fmt.Errorf("shmipc: %w", err)
	}
	s, err := session.AcceptStream()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("shmipc: %w", err), session.Close())
	}
	return &shmipcReader{session, s, size}, nil
}

func (i *shmipcReader) Next(context.Context) ([]byte, error) {
	r := i.s.BufferReader()
	start, err := r.Peek(len(shmipcEnd))
	if err != nil {
		return nil, fmt.Errorf("shmipc: %w", err)
	}
	if string(start) == shmipcEnd {
		return nil, io.EOF
	}
	return r.ReadBytes(i.n)
}

func (i *shmipcReader) Release() { i.s.BufferReader().ReleasePreviousRead() }

func (i *shmipcReader) Close() error {
	err := i.s.BufferWriter().WriteString(shmipcEnd)
	if err == nil {
		err = i.s.Flush(false)
	}
	<-i.session.CloseChan() // the generator has the word
	return errors.Join(err, i.session.Close())
}
