//go:build linux

package ring

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// children are the parts that another process plays.
var children = map[string]func(ctx context.Context, name string) error{
	"reader": childReader,
	"writer": childWriter,
	"echo":   childEcho,
}

const (
	streamPackets = 20_000
	streamSeed    = 7
)

// fill writes packet n of a stream: its length and bytes follow from n alone.
func fill(p []byte, n uint64) int {
	src := rand.New(rand.NewPCG(streamSeed, n))
	p = p[:8+src.IntN(len(p)-7)]
	binary.LittleEndian.PutUint64(p, n)
	for i := 8; i+8 <= len(p); i += 512 {
		binary.LittleEndian.PutUint64(p[i:], src.Uint64())
	}
	return len(p)
}

// check compares packet n with what fill writes.
func check(p []byte, n uint64, scratch []byte) error {
	want := scratch[:fill(scratch, n)]
	if len(p) != len(want) || binary.LittleEndian.Uint64(p) != n {
		return fmt.Errorf("packet %d: number %d, %d bytes in place of %d", n, binary.LittleEndian.Uint64(p), len(p), len(want))
	}
	for i := 8; i+8 <= len(p); i += 512 {
		if binary.LittleEndian.Uint64(p[i:]) != binary.LittleEndian.Uint64(want[i:]) {
			return fmt.Errorf("packet %d differs at byte %d", n, i)
		}
	}
	return nil
}

// childReader reads to the end and prints how many packets were right.
func childReader(ctx context.Context, name string) error {
	r, err := Open(ctx, name, Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	d, err := r.Reader(ctx)
	if err != nil {
		return err
	}
	n, err := readStream(ctx, d)
	fmt.Println(n, err)
	return nil
}

// readStream checks packets until the stream ends.
func readStream(ctx context.Context, d *Reader) (n uint64, err error) {
	scratch := make([]byte, d.ring.Payload())
	for ; ; n++ {
		p, err := d.Peek(ctx)
		if err != nil {
			return n, err
		}
		if err := check(p, n, scratch); err != nil {
			return n, err
		}
		d.Release()
	}
}

// childWriter writes for ever.
func childWriter(ctx context.Context, name string) error {
	r, err := Open(ctx, name, Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := r.Writer(ctx)
	if err != nil {
		return err
	}
	return writeStream(ctx, w, 1<<62)
}

func writeStream(ctx context.Context, w *Writer, packets uint64) error {
	for n := range packets {
		if err := w.Commit(ctx, fill(w.Reserve(), n)); err != nil {
			return err
		}
	}
	return nil
}

// childEcho sends back on one ring the packets of another.
func childEcho(ctx context.Context, name string) error {
	there, err := Open(ctx, name, Options{})
	if err != nil {
		return err
	}
	defer there.Close()
	back, err := Open(ctx, name+"-back", Options{})
	if err != nil {
		return err
	}
	defer back.Close()
	d, err := there.Reader(ctx)
	if err != nil {
		return err
	}
	w, err := back.Writer(ctx)
	if err != nil {
		return err
	}
	for {
		p, err := d.Peek(ctx)
		if errors.Is(err, EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.Write(ctx, p); err != nil {
			return err
		}
		d.Release()
	}
}

// child starts a process that plays a part on a ring.
func child(t *testing.T, part, name string) (*exec.Cmd, io.Reader) {
	cmd := exec.CommandContext(background(t), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+part, "NFC_RING_NAME="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd, out
}

// TestStreamBetweenProcesses: every byte, in order, with each way to wait; the side that is first
// waits for the other.
func TestStreamBetweenProcesses(t *testing.T) {
	for _, wait := range []Wait{Adaptive, Yield, Park} {
		t.Run(fmt.Sprint(wait), func(t *testing.T) {
			ctx := background(t)
			r := create(t, Config{Packets: 13, PacketSize: os.Getpagesize(), Wait: wait, Prewarm: true})
			_, out := child(t, "reader", r.Name())
			w, err := r.Writer(ctx)
			require.NoError(t, err)
			require.NoError(t, writeStream(ctx, w, streamPackets))
			require.NoError(t, w.Flush(ctx))
			require.NoError(t, w.Close())
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintln(streamPackets, io.EOF), line)
		})
	}
}

// TestEchoBetweenProcesses: two rings make a conversation.
func TestEchoBetweenProcesses(t *testing.T) {
	ctx := background(t)
	name := newName()
	there, err := Create(name, Config{})
	require.NoError(t, err)
	defer there.Close()
	back, err := Create(name+"-back", Config{})
	require.NoError(t, err)
	defer back.Close()
	child(t, "echo", name)
	w, err := there.Writer(ctx)
	require.NoError(t, err)
	d, err := back.Reader(ctx)
	require.NoError(t, err)
	buf := make([]byte, back.Payload())
	for n := range uint64(2000) {
		require.NoError(t, w.Commit(ctx, fill(w.Reserve(), n)))
		got, err := d.Read(ctx, buf)
		require.NoError(t, err)
		require.NoError(t, check(buf[:got], n, make([]byte, back.Payload())))
	}
}

// TestWriterKilled: what a dead writer published is read, whole and in order,
// then the reader gets the error; a new pair starts from nothing.
func TestWriterKilled(t *testing.T) {
	for round := range 20 {
		ctx := background(t)
		r := create(t, Config{Packets: 5, PacketSize: os.Getpagesize()})
		before, err := r.Stats()
		require.NoError(t, err)
		cmd, _ := child(t, "writer", r.Name())
		d, err := r.Reader(ctx)
		require.NoError(t, err)
		scratch := make([]byte, r.Payload())
		for n := range uint64(10 * round) {
			p, err := d.Peek(ctx)
			require.NoError(t, err)
			require.NoError(t, check(p, n, scratch))
			d.Release()
		}
		if round == 0 { // it attached, so that there is somebody to die
			_, err := d.Peek(ctx)
			require.NoError(t, err)
		}
		require.NoError(t, cmd.Process.Kill())
		for err == nil {
			_, err = d.Peek(ctx)
			d.Release()
		}
		require.ErrorIs(t, err, ErrPeerDied)
		_, err = d.Peek(ctx)
		require.ErrorIs(t, err, ErrPeerDied, "it stays dead")
		require.NoError(t, d.Close())
		w2, d2 := pair(t, r)
		require.NoError(t, w2.Write(ctx, []byte("again")))
		p, err := d2.Peek(ctx)
		require.NoError(t, err)
		require.Equal(t, "again", string(p))
		after, err := r.Stats()
		require.NoError(t, err)
		require.Equal(t, before.Generation+1, after.Generation)
	}
}

// TestBlockedCallsEndSoon: a call that is blocked when the other side dies ends at once, however it
// waits.
func TestBlockedCallsEndSoon(t *testing.T) {
	for _, wait := range []Wait{Adaptive, Yield, Park} {
		for name, write := range map[string]func(context.Context, *Writer) error{
			"commit": func(ctx context.Context, w *Writer) error { return w.Commit(ctx, 8) },
			"flush":  func(ctx context.Context, w *Writer) error { return w.Flush(ctx) },
		} {
			t.Run(fmt.Sprint(wait, name), func(t *testing.T) {
				ctx := background(t)
				there := create(t, Config{Packets: 3, PacketSize: os.Getpagesize(), Wait: wait})
				back, err := Create(there.Name()+"-back", Config{Packets: 3, PacketSize: os.Getpagesize(), Wait: wait})
				require.NoError(t, err)
				defer back.Close()
				cmd, _ := child(t, "echo", there.Name())
				w, err := there.Writer(ctx)
				require.NoError(t, err)
				d, err := back.Reader(ctx)
				require.NoError(t, err)
				require.NoError(t, w.Write(ctx, []byte("here")))
				_, err = d.Peek(ctx)
				require.NoError(t, err)
				require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
				require.NoError(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil))
				d.Release()
				full := false
				for !full {
					require.NotNil(t, w.Reserve())
					ok, err := w.TryCommit(8)
					require.NoError(t, err)
					full = !ok
				}
				for name, err := range beside.Ends(t, map[string]func() error{
					"peek":  func() error { _, err := d.Peek(ctx); return err },
					"write": func() error { return write(ctx, w) },
				}, func() {
					for wait != Yield && (d.mine.parked.Load() == 0 || w.mine.parked.Load() == 0) {
						runtime.Gosched()
					}
				}, func() {
					require.NoError(t, cmd.Process.Kill())
					_ = cmd.Wait() // it was killed
				}) {
					require.ErrorIs(t, err, ErrPeerDied, name)
				}
			})
		}
	}
}

// TestReaderKilled: a writer that waits for a dead reader gets the error, and so
// does one that waits for a reader that never returns.
func TestReaderKilled(t *testing.T) {
	ctx := background(t)
	r := create(t, Config{Packets: 5, PacketSize: os.Getpagesize(), Wait: Park})
	cmd, _ := child(t, "reader", r.Name())
	w, err := r.Writer(ctx)
	require.NoError(t, err)
	for n := range uint64(100) {
		require.NoError(t, w.Commit(ctx, fill(w.Reserve(), n)))
	}
	require.NoError(t, cmd.Process.Kill())
	for n := uint64(100); err == nil; n++ {
		err = w.Commit(ctx, fill(w.Reserve(), n))
	}
	require.ErrorIs(t, err, ErrPeerDied)
	require.ErrorIs(t, w.Flush(ctx), ErrPeerDied)
	require.Nil(t, w.Reserve())

	// A new reader waits until the writer has left the old generation.
	claimed := make(chan error, 1)
	go func() {
		d, err := r.Reader(ctx)
		if err == nil {
			err = d.Close()
		}
		claimed <- err
	}()
	require.NoError(t, w.Close())
	require.NoError(t, <-claimed)
}
