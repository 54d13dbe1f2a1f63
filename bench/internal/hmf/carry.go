//go:build linux

package hmf

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

// Carriers of packets from the generator to the receiver: the ring, and those that one
// would use instead. A peer's files are opened by the starter, or its socket lies
// in a folder of the starter.
const (
	carryRing   = ""
	carryUnix   = "unix"
	carryPipe   = "pipe"
	carryShmipc = "shmipc"
)

// openWriter opens the generator's end.
func openWriter(ctx context.Context, j *hmfJob) (compare.PacketWriter, error) {
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
		return compare.DialShmipc(ctx, j.shmipcSocket(), j.Payload, j.Batch)
	}
	f, err := compare.Inherited(compare.FirstInherited)
	if err != nil {
		return nil, err
	}
	return compare.NewStreamWriter(f, j.Payload, j.Batch), nil
}

// openReader opens the receiver's end.
func openReader(ctx context.Context, j *hmfJob) (compare.PacketReader, error) {
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
		return compare.ServeShmipc(j.shmipcSocket(), j.Payload)
	}
	f, err := compare.Inherited(compare.FirstInherited)
	if err != nil {
		return nil, err
	}
	return compare.NewStreamReader(f, j.Payload, j.Batch), nil
}

type ringWriter struct {
	r *ring.Ring
	w *ring.Writer
}

func (o *ringWriter) Reserve() ([]byte, error) {
	if p := o.w.Reserve(); p != nil {
		return p, nil
	}
	return nil, errors.New("the ring is of no use any more")
}

func (o *ringWriter) Commit(ctx context.Context, n int) error { return o.w.Commit(ctx, n) }
func (o *ringWriter) Finish(ctx context.Context) error {
	return errors.Join(o.w.Flush(ctx), o.w.Close(), o.r.Close())
}

type ringReader struct {
	r *ring.Ring
	d *ring.Reader
}

func (i *ringReader) Next(ctx context.Context) ([]byte, error) { return i.d.Peek(ctx) }
func (i *ringReader) Release()                                 { i.d.Release() }
func (i *ringReader) Close() error                             { return errors.Join(i.d.Close(), i.r.Close()) }

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

func (o *batchWriter) Reserve() ([]byte, error) { return o.packets[o.n], nil }
func (o *batchWriter) Commit(ctx context.Context, _ int) error {
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

func (o *batchWriter) Finish(ctx context.Context) error {
	return errors.Join(o.flush(ctx), o.ringWriter.Finish(ctx))
}

// batchReader takes several packets at once.
type batchReader struct {
	ringReader
	packets [][]byte
	at, n   int // the next one of those that were taken
}

func (i *batchReader) Next(ctx context.Context) ([]byte, error) {
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

func (i *batchReader) Release() {
	if i.at == i.n {
		i.d.Release()
	}
}

// shmipcSocket is where the receiver listens.
func (j *hmfJob) shmipcSocket() string { return filepath.Join(j.Dir, "shmipc.sock") }
