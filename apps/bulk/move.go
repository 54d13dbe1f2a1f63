package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// chunksPerChannel is how many chunks each channel moves between two looks at
// the files: enough for the directions of several channels to overlap.
const chunksPerChannel = 2

// mover sends a stream to loopback processes on the device and back. It works
// in rounds: read and hash chunks; move them, and nothing else, on all
// channels; hash what came back; copy the same chunks with memcpy.
type mover struct {
	chans      []*nfcomms.Channel
	sent, back [][]byte
	staging    []byte // stands for the device's memory in the memcpy

	h2d, d2h         meter
	copied           [2]time.Duration // memcpy there and back
	wall, cpu        time.Duration    // of the moving
	bytes            int64            // there and back, verified
	sentSum, backSum hash.Hash
	begun            time.Time
}

func newMover(ctx context.Context, dev *nfcomms.Device, o options) (*mover, error) {
	m := &mover{staging: make([]byte, o.chunk), sentSum: sha256.New(), backSum: sha256.New()}
	for range o.channels {
		loopback, err := dev.Run(ctx, nfcomms.Program{Name: "loopback"})
		if err != nil {
			return m, err
		}
		m.chans = append(m.chans, loopback.Channels...)
	}
	for range o.channels * chunksPerChannel {
		m.sent = append(m.sent, make([]byte, o.chunk))
		m.back = append(m.back, make([]byte, o.chunk))
	}
	return m, m.warm(ctx)
}

// warm moves every buffer once, unmeasured: the first touch of a page costs
// more than its transfer.
func (m *mover) warm(ctx context.Context) error {
	err := m.exchange(ctx, m.sent)
	m.h2d, m.d2h = meter{}, meter{}
	copy(m.staging, m.back[0])
	m.begun = time.Now()
	return err
}

// moveAll moves everything r gives.
func (m *mover) moveAll(ctx context.Context, r io.ReadCloser, bar command.Bar) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		chunks, end, err := m.fill(r)
		if err != nil {
			return err
		}
		n := 0
		for _, c := range chunks {
			n += len(c)
		}
		if err := m.round(ctx, chunks); err != nil {
			return err
		}
		m.bytes += int64(n)
		bar.Add(n)
		if end {
			return nil
		}
	}
}

// fill reads chunks and says whether the stream ended.
func (m *mover) fill(r io.Reader) (chunks [][]byte, end bool, err error) {
	for _, buf := range m.sent {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			m.sentSum.Write(buf[:n])
			chunks = append(chunks, buf[:n])
		}
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return chunks, true, nil
		case err != nil:
			return nil, false, err
		}
	}
	return chunks, false, nil
}

// round moves the chunks, checks them, and copies them for comparison.
func (m *mover) round(ctx context.Context, chunks [][]byte) error {
	start, cpu := time.Now(), command.CPUTime()
	err := m.exchange(ctx, chunks)
	m.wall += time.Since(start)
	m.cpu += command.CPUTime() - cpu
	if err != nil {
		return err
	}
	for i, c := range chunks {
		m.backSum.Write(m.back[i][:len(c)])
	}
	if sent, back := m.sums(); sent != back {
		return fmt.Errorf("data came back changed: SHA-256 %s was sent, %s came back", sent, back)
	}
	for i, c := range chunks {
		t := time.Now()
		copy(m.staging, c)
		m.copied[0] += time.Since(t)
		t = time.Now()
		copy(m.back[i], m.staging[:len(c)])
		m.copied[1] += time.Since(t)
	}
	return nil
}

// exchange moves the chunks there and back; each channel takes the next one
// when it is free. The first error ends all of them.
func (m *mover) exchange(ctx context.Context, chunks [][]byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for _, ch := range m.chans {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(chunks); i = int(next.Add(1)) - 1 {
				if err := m.echo(ctx, ch, chunks[i], m.back[i][:len(chunks[i])]); err != nil {
					cancel(err) // the first one stays the cause
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// echo moves one chunk there and back.
func (m *mover) echo(ctx context.Context, ch *nfcomms.Channel, sent, back []byte) error {
	err := m.h2d.time(func() error { return ch.SendInd(ctx, sent) })
	if err != nil {
		return err
	}
	return m.d2h.time(func() error {
		_, err := ch.ReceiveInd(ctx, back)
		return err
	})
}

// sums returns the SHA-256 of what was sent and of what came back.
func (m *mover) sums() (sent, back string) {
	return fmt.Sprintf("%x", m.sentSum.Sum(nil)), fmt.Sprintf("%x", m.backSum.Sum(nil))
}

// meter measures the time during which at least one call is under way, so that
// calls at the same time count once. Safe for concurrent use.
type meter struct {
	mu    sync.Mutex
	calls int
	since time.Time
	total time.Duration
}

// time runs fn and counts its time.
func (m *meter) time(fn func() error) error {
	m.mu.Lock()
	if m.calls++; m.calls == 1 {
		m.since = time.Now()
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		if m.calls--; m.calls == 0 {
			m.total += time.Since(m.since)
		}
		m.mu.Unlock()
	}()
	return fn()
}
