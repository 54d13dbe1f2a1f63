//go:build linux

package hmf

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cloudwego/shmipc-go"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// What carries packets from the generator to the receiver: the ring, or what one
// would use instead. A peer's files are opened by the starter, or its socket lies
// in a folder of the starter.
const (
	carryRing   = ""
	carryUnix   = "unix"
	carryPipe   = "pipe"
	carryShmipc = "shmipc"
)

// hmfWriter is the generator's end.
type hmfWriter interface {
	// reserve returns where the next packet is filled.
	reserve() ([]byte, error)
	// commit hands its first n bytes over.
	commit(ctx context.Context, n int) error
	// finish ends the stream, in a way that loses nothing.
	finish(ctx context.Context) error
}

// hmfReader is the receiver's end.
type hmfReader interface {
	// next returns a packet, io.EOF after the last; release is through with it.
	next(ctx context.Context) ([]byte, error)
	release()
	close() error
}

// inheritedFile is the descriptor of a pipe's or socket's end in a child.
const inheritedFile = 3

// openWriter opens the generator's end.
func openWriter(ctx context.Context, j *hmfJob) (hmfWriter, error) {
	switch j.Carry {
	case carryRing:
		r, err := ring.Open(ctx, j.Ring, ring.Options{Wait: hmfWaits[j.Wait], Prewarm: j.Warm})
		if err != nil {
			return nil, err
		}
		w, err := r.Writer(ctx)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		if j.Batch > 1 {
			return newBatchWriter(j, r, w), nil
		}
		return &ringWriter{r, w}, nil
	case carryShmipc:
		return dialShmipc(ctx, j)
	}
	f, err := inherited()
	return &streamWriter{f, bufio.NewWriterSize(f, j.Batch*j.Payload), make([]byte, j.Payload)}, err
}

// openReader opens the receiver's end.
func openReader(ctx context.Context, j *hmfJob) (hmfReader, error) {
	switch j.Carry {
	case carryRing:
		r, err := ring.Open(ctx, j.Ring, ring.Options{Wait: hmfWaits[j.Wait], Prewarm: j.Warm})
		if err != nil {
			return nil, err
		}
		d, err := r.Reader(ctx)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		if j.Batch > 1 {
			return &batchReader{ringReader: ringReader{r, d}, packets: make([][]byte, j.Batch)}, nil
		}
		return &ringReader{r, d}, nil
	case carryShmipc:
		return serveShmipc(j)
	}
	f, err := inherited()
	return &streamReader{f, bufio.NewReaderSize(f, j.Batch*j.Payload), make([]byte, j.Payload)}, err
}

// inherited is the end that the starter left; it waits in the runtime's poller.
func inherited() (*os.File, error) {
	if err := syscall.SetNonblock(inheritedFile, true); err != nil {
		return nil, fmt.Errorf("end of the starter: %w", err)
	}
	return os.NewFile(inheritedFile, "end"), nil
}

type ringWriter struct {
	r *ring.Ring
	w *ring.Writer
}

func (o *ringWriter) reserve() ([]byte, error) {
	if p := o.w.Reserve(); p != nil {
		return p, nil
	}
	return nil, errors.New("the ring is of no use any more")
}

func (o *ringWriter) commit(ctx context.Context, n int) error { return o.w.Commit(ctx, n) }
func (o *ringWriter) finish(ctx context.Context) error {
	return errors.Join(o.w.Flush(ctx), o.w.Close(), o.r.Close())
}

type ringReader struct {
	r *ring.Ring
	d *ring.Reader
}

func (i *ringReader) next(ctx context.Context) ([]byte, error) { return i.d.Peek(ctx) }
func (i *ringReader) release()                                 { i.d.Release() }
func (i *ringReader) close() error                             { return errors.Join(i.d.Close(), i.r.Close()) }

// batchWriter hands several packets over at once.
type batchWriter struct {
	ringWriter
	packets [][]byte
	n       int // filled
}

func newBatchWriter(j *hmfJob, r *ring.Ring, w *ring.Writer) *batchWriter {
	o := &batchWriter{ringWriter: ringWriter{r, w}}
	for range j.Batch {
		o.packets = append(o.packets, make([]byte, j.Payload))
	}
	return o
}

func (o *batchWriter) reserve() ([]byte, error) { return o.packets[o.n], nil }
func (o *batchWriter) commit(ctx context.Context, _ int) error {
	if o.n++; o.n < len(o.packets) {
		return nil
	}
	return o.flush(ctx)
}

func (o *batchWriter) flush(ctx context.Context) error {
	_, err := o.w.WriteBatch(ctx, o.packets[:o.n])
	o.n = 0
	return err
}

func (o *batchWriter) finish(ctx context.Context) error {
	return errors.Join(o.flush(ctx), o.ringWriter.finish(ctx))
}

// batchReader takes several packets at once.
type batchReader struct {
	ringReader
	packets [][]byte
	at, n   int // the next one of those that were taken
}

func (i *batchReader) next(ctx context.Context) ([]byte, error) {
	if i.at == i.n {
		var err error
		if i.n, err = i.d.PeekBatch(ctx, i.packets); err != nil {
			return nil, err
		}
		i.at = 0
	}
	i.at++
	return i.packets[i.at-1], nil
}

func (i *batchReader) release() {
	if i.at == i.n {
		i.d.Release()
	}
}

// streamWriter writes packets of one size into a pipe or a socket, a batch in a call.
type streamWriter struct {
	to     *os.File
	batch  *bufio.Writer // what is as large as its buffer goes past it
	packet []byte
}

func (o *streamWriter) reserve() ([]byte, error) { return o.packet, nil }
func (o *streamWriter) commit(_ context.Context, n int) error {
	_, err := o.batch.Write(o.packet[:n])
	return err
}
func (o *streamWriter) finish(context.Context) error {
	return errors.Join(o.batch.Flush(), o.to.Close())
}

type streamReader struct {
	from   *os.File
	batch  *bufio.Reader
	packet []byte
}

func (i *streamReader) next(context.Context) ([]byte, error) {
	_, err := io.ReadFull(i.batch, i.packet)
	return i.packet, err
}
func (i *streamReader) release()     {}
func (i *streamReader) close() error { return i.from.Close() }

// shmipcSocket is where the receiver listens.
func (j *hmfJob) shmipcSocket() string { return filepath.Join(j.Dir, "shmipc.sock") }

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

// dialShmipc waits for the receiver to listen.
func dialShmipc(ctx context.Context, j *hmfJob) (hmfWriter, error) {
	c := shmipc.DefaultSessionManagerConfig()
	shmipcConfig(c.Config)
	c.Network, c.Address, c.SessionNum = "unix", j.shmipcSocket(), 1
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
	return &shmipcWriter{m: m, s: s, n: j.Payload, batch: j.Batch}, nil
}

func (o *shmipcWriter) reserve() ([]byte, error) { return o.s.BufferWriter().Reserve(o.n) }
func (o *shmipcWriter) commit(context.Context, int) error {
	if o.count++; o.count%o.batch > 0 {
		return nil
	}
	return o.s.Flush(false)
}

// finish waits for the receiver's word: the end of a session is not ordered after
// what was sent.
func (o *shmipcWriter) finish(context.Context) error {
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

func serveShmipc(j *hmfJob) (hmfReader, error) {
	l, err := net.Listen("unix", j.shmipcSocket())
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
	return &shmipcReader{session, s, j.Payload}, nil
}

func (i *shmipcReader) next(context.Context) ([]byte, error) {
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
func (i *shmipcReader) release() { i.s.BufferReader().ReleasePreviousRead() }
func (i *shmipcReader) close() error {
	err := i.s.BufferWriter().WriteString(shmipcEnd)
	if err == nil {
		err = i.s.Flush(false)
	}
	<-i.session.CloseChan() // the generator has the word
	return errors.Join(err, i.session.Close())
}
