//go:build linux && cgo

package rings

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
	"github.com/nfcomms/nfcomms/pkg/program"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// image is that of testdata, built once.
var image = sync.OnceValues(func() ([]byte, error) {
	return program.Build(context.Background(), os.DirFS("testdata"), program.Options{})
})

// outcome is that of testdata.
type outcome struct {
	Packets, Bytes uint64
	Status         int64
}

// Statuses of an outcome.
const (
	closed  = -1
	proto   = -7
	aborted = -9
)

// served is a process that has a side of a ring.
type served struct {
	ctx    context.Context
	dev    *nfcomms.Device
	ring   *ring.Ring
	result *nfcomms.Channel
	ended  chan error
	cancel context.CancelFunc
	mine   *nfcomms.Instance
}

// start has a process at one side of a new ring of few packets.
func start(t *testing.T, p nfcomms.Program, serve func(context.Context, *nfcomms.Device, *ring.Ring, *nfcomms.Instance) error, wait ring.Wait) *served {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a watchdog
	t.Cleanup(cancel)
	built, err := image()
	require.NoError(t, err)
	l := &served{ctx: ctx, ended: make(chan error, 1)}
	l.dev, err = nfcomms.Open(ctx, "sim:?beat=1m") // one that is late on a busy machine ends nothing
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.dev.Close()) })
	_, err = l.dev.Load(ctx, built)
	require.NoError(t, err)
	l.ring, err = ring.Create(fmt.Sprintf("rings-test-%d", os.Getpid()), ring.Config{Packets: 4, Wait: wait})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.ring.Close()) })
	p.Targets = 2
	l.mine, err = l.dev.Run(ctx, p)
	require.NoError(t, err)
	l.result = l.mine.Channels[1]
	ctx, l.cancel = context.WithCancel(ctx)
	go func() { l.ended <- serve(ctx, l.dev, l.ring, l.mine) }()
	t.Cleanup(l.cancel)
	return l
}

// outcome receives that of the process.
func (l *served) outcome(t *testing.T) (o outcome) {
	t.Helper()
	var b [nfcomms.MessageSize]byte
	n, err := l.result.Receive(l.ctx, b[:])
	require.NoError(t, err)
	_, err = binary.Decode(b[:n], binary.LittleEndian, &o)
	require.NoError(t, err)
	return o
}

// begun waits until the process has begun to read: before that, the end of the other side is that of
// the generation.
func (l *served) begun(t *testing.T) {
	for {
		s, err := l.ring.Stats()
		require.NoError(t, err)
		if s.Reader == 0 {
			return
		}
		require.NoError(t, l.ctx.Err())
		runtime.Gosched()
	}
}

// sizeOf and fill are those of testdata.
func sizeOf(payload int, i uint64) int { return int(i*97%uint64(payload/8+1)) * 8 }

func fill(b []byte, i uint64) {
	for at := 0; at < len(b); at += 8 {
		binary.LittleEndian.PutUint64(b[at:], i)
	}
}

// write writes packets from a number on.
func (l *served) write(w *ring.Writer, from, to uint64) error {
	for i := from; i < to; i++ {
		n := sizeOf(l.ring.Payload(), i)
		fill(w.Reserve()[:n], i)
		if err := w.Commit(l.ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// TestProcessReads: a process reads all that is written, in place, sleeping when there is nothing;
// and the writer sleeps when the ring is full.
func TestProcessReads(t *testing.T) {
	const packets = 3000
	for _, wait := range []ring.Wait{ring.Adaptive, ring.Park} {
		l := start(t, nfcomms.Program{Name: "reader"}, ServeReader, wait)
		w, err := l.ring.Writer(l.ctx)
		require.NoError(t, err)
		if err = l.write(w, 0, packets); err != nil {
			require.NoError(t, errors.Join(err, <-l.ended))
		}
		require.NoError(t, w.Close())
		o := l.outcome(t)
		require.Equal(t, int64(closed), o.Status)
		require.Equal(t, uint64(packets), o.Packets)
		require.NoError(t, <-l.ended)
		require.NoError(t, l.ring.Close())
	}
}

// TestProcessWrites: what a process writes is read whole and in order, and ends with its close.
func TestProcessWrites(t *testing.T) {
	const packets = 3000
	for _, wait := range []ring.Wait{ring.Adaptive, ring.Park} {
		l := start(t, nfcomms.Program{Name: "writer", Argument: packets}, ServeWriter, wait)
		rd, err := l.ring.Reader(l.ctx)
		require.NoError(t, err)
		var told outcome
		done := make(chan bool)
		go func() {
			defer close(done)
			told = l.outcome(t)
		}()
		for i := uint64(0); ; i++ {
			p, err := rd.Peek(l.ctx)
			if err != nil {
				require.ErrorIs(t, err, ring.EOF)
				require.Equal(t, uint64(packets), i)
				break
			}
			want := make([]byte, sizeOf(l.ring.Payload(), i))
			fill(want, i)
			require.Equal(t, want, p)
			rd.Release()
		}
		<-done
		require.Zero(t, told.Status)
		require.NoError(t, <-l.ended)
		require.NoError(t, rd.Close())
		require.NoError(t, l.ring.Close())
	}
}

// TestProcessCrashes: the other side sees a death; the ring serves the next pair.
func TestProcessCrashes(t *testing.T) {
	l := start(t, nfcomms.Program{Name: "mortal", Argument: 2}, ServeReader, ring.Adaptive)
	w, err := l.ring.Writer(l.ctx)
	require.NoError(t, err)
	for i := uint64(0); err == nil; i++ {
		err = l.write(w, i, i+1)
	}
	require.ErrorIs(t, err, ring.ErrPeerDied)
	var crash *nfcomms.CrashError
	require.ErrorAs(t, <-l.ended, &crash)
	require.NoError(t, w.Close())
	rd, err := l.ring.Reader(l.ctx)
	require.NoError(t, err)
	require.NoError(t, rd.Close())
}

// TestOtherSideEnds: the process learns how the other side ended, and sleeps for neither.
func TestOtherSideEnds(t *testing.T) {
	l := start(t, nfcomms.Program{Name: "writer", Argument: 1 << 40}, ServeWriter, ring.Adaptive)
	rd, err := l.ring.Reader(l.ctx)
	require.NoError(t, err)
	_, err = rd.Peek(l.ctx)
	require.NoError(t, err)
	require.NoError(t, rd.Close())
	require.Equal(t, int64(closed), l.outcome(t).Status)
	require.NoError(t, <-l.ended)
	require.NoError(t, l.ring.Close())

	l = start(t, nfcomms.Program{Name: "reader"}, ServeReader, ring.Adaptive)
	l.begun(t)
	dead, err := l.ring.HoldWriter(l.ctx) // a side that ends without a word
	require.NoError(t, err)
	require.NoError(t, dead.Close())
	require.Equal(t, int64(aborted), l.outcome(t).Status)
	require.NoError(t, <-l.ended)
}

// TestTakenBack: the end of the context, of the ring and of the device end the process, while it waits.
func TestTakenBack(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(*served) error
		want error
	}{
		"context": {func(l *served) error { l.cancel(); return nil }, context.Canceled},
		"ring":    {func(l *served) error { return l.ring.Close() }, ring.ErrClosed},
		"reset":   {func(l *served) error { return l.dev.Reset(l.ctx) }, nfcomms.ErrDeviceLost},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, nfcomms.Program{Name: "reader"}, ServeReader, ring.Adaptive)
			w, err := l.ring.Writer(l.ctx)
			require.NoError(t, err)
			require.NoError(t, l.write(w, 0, 7))
			require.NoError(t, w.Flush(l.ctx))
			require.NoError(t, tt.end(l))
			require.ErrorIs(t, <-l.ended, tt.want)
			if err = w.Commit(l.ctx, 0); name != "ring" {
				err = l.write(w, 8, 30)
				require.True(t, errors.Is(err, ring.ErrPeerDied) || errors.Is(err, ring.ErrReaderClosed), err)
			}
			require.Error(t, err)
			require.NoError(t, w.Close())
		})
	}
}

// TestLies: what the other side and the process write is not believed.
func TestLies(t *testing.T) {
	const writerPos = 1024
	for name, pos := range map[string]int64{"back": -7, "ahead": 4, "far": 1 << 62} {
		t.Run(name, func(t *testing.T) {
			l := start(t, nfcomms.Program{Name: "reader"}, ServeReader, ring.Adaptive)
			l.begun(t)
			other, err := l.ring.HoldWriter(l.ctx)
			require.NoError(t, err)
			_, err = other.File().WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(pos)), writerPos)
			require.NoError(t, err)
			other.Wake()
			require.Equal(t, int64(proto), l.outcome(t).Status)
			require.NoError(t, <-l.ended)
			require.NoError(t, other.Close())
		})
	}
	for _, said := range []uint64{0, 1, 4, 5, nfcomms.MessageSize} {
		l := start(t, nfcomms.Program{Name: "liar", Argument: said}, ServeReader, ring.Adaptive)
		require.ErrorIs(t, <-l.ended, ErrProcess)
		require.NoError(t, l.ring.Close())
	}
}

// TestNoMemoryInPlace: the device of another node reaches none, and the side is free.
func TestNoMemoryInPlace(t *testing.T) {
	ctx := t.Context()
	dev, err := nfcomms.Open(ctx, "sim:?torus=2x1x1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	far, err := fabric.Device(ctx, dev, fabric.At(1, 0, 0))
	require.NoError(t, err)
	i, err := far.Run(ctx, nfcomms.Program{Name: "sink"})
	require.NoError(t, err)
	r, err := ring.Create(fmt.Sprintf("rings-test-%d", os.Getpid()), ring.Config{})
	require.NoError(t, err)
	defer r.Close()
	require.ErrorIs(t, ServeReader(ctx, far, r, i), nfcomms.ErrNotSupported)
	rd, err := r.Reader(ctx)
	require.NoError(t, err)
	require.NoError(t, rd.Close())
}
