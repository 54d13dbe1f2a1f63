package main

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

//go:embed device
var source embed.FS

// Sizes and times of the work on the device.
const (
	processes = 8
	prefix    = 8               // bytes before a chunk: the sum of what came before
	chunkSize = 256 << 10       // what device/crc.c takes at once
	attempts  = 5               // of a chunk, each on another process or after a restart
	patience  = 5 * time.Second // for a process, and for what it does
)

// errDevice means that the device did not do a chunk in so many attempts.
var errDevice = errors.New("the device does not work, try again later")

// lane is a device process that nobody else uses now.
type lane struct {
	ch         *nfcomms.Channel
	generation int
}

// lanes are the device processes that are free. They come anew with every generation
// of the device.
type lanes struct {
	free       chan lane
	patience   time.Duration
	retries    atomic.Int64 // chunks that were tried again
	mu         sync.Mutex
	generation int               // 0: the device does not work
	victim     nfcomms.ProcessID // a process of it, or of the one before
	broken     chan struct{}     // closed when a process of this generation failed
}

func newLanes() *lanes { return &lanes{free: make(chan lane, processes), patience: patience} }

// supervise keeps the processes running until ctx ends.
func (l *lanes) supervise(ctx context.Context, dev *nfcomms.Device, log *slog.Logger) error {
	image, err := program.Build(ctx, source, program.Options{})
	if err != nil {
		return err
	}
	s := nfcomms.Supervisor{Images: [][]byte{image}, Logger: log, MaxWait: time.Second}
	for range processes {
		s.Programs = append(s.Programs, nfcomms.Program{Name: "uploads.crc"})
	}
	return s.Run(ctx, dev, l.serve)
}

// serve offers the processes of one generation until it is over.
func (l *lanes) serve(ctx context.Context, g *nfcomms.Generation) error {
	broken := make(chan struct{})
	l.mu.Lock()
	l.generation, l.broken, l.victim = g.Number, broken, g.Instances[0].Process.ID
	l.drain()
	for _, i := range g.Instances {
		l.free <- lane{i.Channels[0], g.Number}
	}
	l.mu.Unlock()
	var err error
	select {
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-broken:
		err = nfcomms.ErrClosed // begins the next generation
	}
	l.mu.Lock()
	l.generation = 0
	l.drain()
	l.mu.Unlock()
	return err
}

// drain takes out what is left of a generation before. Must hold mu.
func (l *lanes) drain() {
	for {
		select {
		case <-l.free:
		default:
			return
		}
	}
}

// put gives a lane back. One that failed ends its generation.
func (l *lanes) put(used lane, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case used.generation != l.generation:
	case !failed:
		l.free <- used
	default:
		l.generation = 0
		close(l.broken)
	}
}

// ready reports whether the device works.
func (l *lanes) ready() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generation != 0
}

// sum has a device process add a chunk to a sum. buf holds the chunk, behind prefix
// bytes. A chunk whose process failed is tried again on another one, as it is still
// here: the answer is right, or an error. ctx ends only the waiting, so that no
// process is left with half an exchange.
func (l *lanes) sum(ctx context.Context, before uint32, buf []byte) (uint32, error) {
	binary.NativeEndian.PutUint64(buf, uint64(before))
	for range attempts {
		timer := time.NewTimer(l.patience)
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, context.Cause(ctx)
		case <-timer.C:
			return 0, errDevice
		case a := <-l.free:
			timer.Stop()
			sum, err := exchange(ctx, a.ch, buf)
			l.put(a, err != nil)
			if err == nil {
				return sum, nil
			}
			l.retries.Add(1)
		}
	}
	return 0, errDevice
}

func exchange(ctx context.Context, ch *nfcomms.Channel, buf []byte) (uint32, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := ch.SendInd(ctx, buf); err != nil {
		return 0, err
	}
	sum, err := nfcomms.ChanOf[uint64](ch).Receive(ctx)
	return uint32(sum), err
}
