//go:build linux

package ring

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ownerC is a process in C that created a ring.
type ownerC struct {
	name string
	in   io.Closer // its end destroys the ring
	out  *bufio.Reader
}

func startOwner(t *testing.T, program, name string, packets, size int) *ownerC {
	cmd := exec.Command(program, "create", name, strconv.Itoa(packets), strconv.Itoa(size))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out) // what follows the line that was read
		require.NoError(t, cmd.Wait(), "the sanitizers")
	})
	return &ownerC{name, in, bufio.NewReader(out)}
}

func (o *ownerC) says(t *testing.T) string {
	line, err := o.out.ReadString('\n')
	require.NoError(t, err, line)
	return lower(line)
}

// ringOfC is a ring that C made, opened.
func ringOfC(t *testing.T, program string) (*ownerC, *Ring) {
	o := startOwner(t, program, newName(), 5, unix.Getpagesize())
	require.Equal(t, "ready\n", o.says(t))
	r, err := Open(background(t), o.name, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return o, r
}

// TestRingOfC: a ring that C created is what one of Go is: to Go and C on either
// side, to clients that connect too late, too often or with nonsense.
func TestRingOfC(t *testing.T) {
	program := cPeer(t)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, program string)
	}{
		{"Go on both sides, twice", goOnBothSides},
		{"C reads", cReads},
		{"C writes and is killed", cWrites},
		{"a role is taken once", rolesOfC},
		{"claims that time out", timeOutsOfC},
		{"the creator goes", ownerGoes},
		{"what makes no sense", badOfC},
		{"silent connections", silentOfC},
		{"another user", otherUserOfC},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, program) })
	}
}

func goOnBothSides(t *testing.T, program string) {
	ctx := background(t)
	_, r := ringOfC(t, program)
	require.Equal(t, 5, r.Packets())
	for generation := range uint64(2) {
		w, d := pair(t, r)
		s, err := r.Stats()
		require.NoError(t, err)
		require.Equal(t, generation+1, s.Generation)
		wrote := make(chan error, 1)
		go func() {
			err := writeStream(ctx, w, 2000)
			if err == nil {
				err = w.Close()
			}
			wrote <- err
		}()
		n, err := readStream(ctx, d)
		require.ErrorIs(t, err, EOF)
		require.EqualValues(t, 2000, n)
		require.NoError(t, <-wrote)
		require.NoError(t, d.Close())
	}
}

func cReads(t *testing.T, program string) {
	ctx := background(t)
	_, r := ringOfC(t, program)
	_, says := runC(t, program, "read", r.Name())
	w, err := r.Writer(ctx)
	require.NoError(t, err)
	for n := range uint64(2000) {
		require.NoError(t, w.Commit(ctx, len(cPacket(w.Reserve(), n))))
	}
	require.NoError(t, w.Flush(ctx))
	require.NoError(t, w.Close())
	require.Equal(t, "2000 "+unix.ENODATA.Error()+"\n", lower(says()))
}

// cWrites also has a reader wait for the next generation.
func cWrites(t *testing.T, program string) {
	ctx := background(t)
	_, r := ringOfC(t, program)
	kill, _ := runC(t, program, "write", r.Name(), "1000000000")
	d, err := r.Reader(ctx)
	require.NoError(t, err)
	scratch := make([]byte, r.Payload())
	for n := uint64(0); err == nil; n++ {
		var p []byte
		if p, err = d.Peek(ctx); err == nil {
			requireC(t, p, scratch, n)
			d.Release()
		}
		if n == 300 {
			kill()
		}
	}
	require.ErrorIs(t, err, ErrPeerDied)
	claimed := make(chan error, 1)
	go func() {
		w, err := r.Writer(ctx)
		if err == nil {
			err = w.Close()
		}
		claimed <- err
	}()
	require.NoError(t, d.Close())
	require.NoError(t, <-claimed)
}

func rolesOfC(t *testing.T, program string) {
	ctx := background(t)
	_, r := ringOfC(t, program)
	w, _ := pair(t, r)
	for range 3 {
		_, err := r.Reader(ctx)
		require.ErrorIs(t, err, ErrBusy)
		_, err = r.Writer(ctx)
		require.ErrorIs(t, err, ErrBusy)
	}
	require.NoError(t, w.Close())
	waits, cancel := context.WithCancelCause(ctx)
	cancel(io.ErrClosedPipe)
	_, err := r.Writer(waits) // the reader is there still: it waits, and gives up
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func timeOutsOfC(t *testing.T, program string) {
	_, r := ringOfC(t, program)
	claimsThatTimeOut(t, r)
}

func ownerGoes(t *testing.T, program string) {
	ctx := background(t)
	o, r := ringOfC(t, program)
	_, d := pair(t, r)
	require.NoError(t, o.in.Close())
	require.Equal(t, "destroyed\n", o.says(t))
	_, err := d.Peek(ctx)
	require.ErrorIs(t, err, ErrPeerDied)
	_, err = Open(ctx, o.name, Options{})
	require.ErrorIs(t, err, ErrNotExist)
}

func badOfC(t *testing.T, program string) {
	page := unix.Getpagesize()
	mine := create(t, Config{})
	for _, c := range []struct {
		name          string
		packets, size int
		says          error
	}{
		{newName(), 2, page, unix.EINVAL}, {newName(), 1<<30 + 1, page, unix.EINVAL}, {newName(), 3, page + 8, unix.EINVAL},
		{newName(), 3, 1 << 31, unix.EINVAL}, {"", 3, page, unix.EINVAL}, {"a/b", 3, page, unix.EINVAL},
		{"x y", 3, page, unix.EINVAL}, {mine.Name(), 3, page, unix.EEXIST},
	} {
		require.Equal(t, c.says.Error()+"\n", startOwner(t, program, c.name, c.packets, c.size).says(t))
	}
	_, r := ringOfC(t, program)
	_, err := Create(r.Name(), Config{})
	require.ErrorIs(t, err, ErrExists)
	for _, request := range [][]byte{nil, []byte("GET / HTTP/1.0\r\n"), message(9), message(0)[:9], append(message(0), 0)} {
		c, err := net.DialUnix("unixpacket", nil, socketName(r.Name()))
		require.NoError(t, err)
		if request == nil {
			require.NoError(t, c.CloseWrite())
		} else {
			_, err = c.Write(request)
			require.NoError(t, err)
		}
		_, err = io.Copy(io.Discard, c) // it answers or not, and closes
		if err != nil {
			require.ErrorIs(t, err, unix.ECONNRESET)
		}
		require.NoError(t, c.Close())
	}
	goOnBothSidesOf(t, r)
}

// goOnBothSidesOf sees that a ring still carries a packet.
func goOnBothSidesOf(t *testing.T, r *Ring) {
	w, d := pair(t, r)
	require.NoError(t, w.Write(background(t), []byte("still")))
	p, err := d.Peek(background(t))
	require.NoError(t, err)
	require.Equal(t, "still", string(p))
}

func silentOfC(t *testing.T, program string) {
	_, r := ringOfC(t, program)
	for range 30 * connections {
		c, err := net.DialUnix("unixpacket", nil, socketName(r.Name()))
		if err != nil {
			break // the queue is full
		}
		defer c.Close()
	}
	goOnBothSidesOf(t, r)
}

func otherUserOfC(t *testing.T, program string) {
	_, r := ringOfC(t, program)
	requireDenied(t, r.Name())
}
