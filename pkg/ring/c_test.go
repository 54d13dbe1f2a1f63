//go:build linux

package ring

import (
	"bufio"
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cPeer is kmod/lib/test/ring_peer.c under the sanitizers.
func cPeer(t *testing.T) string {
	lib, err := filepath.Abs("../../kmod/lib")
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "ring_peer")
	out, err := exec.Command("gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o", program,
		filepath.Join(lib, "test/ring_peer.c"), filepath.Join(lib, "ring.c"), filepath.Join(lib, "ring_owner.c")).CombinedOutput()
	require.NoError(t, err, "gcc (install it with: apt-get install gcc libc6-dev): %s", out)
	return program
}

// runC starts a C side; the returned function returns its output.
func runC(t *testing.T, args ...string) (kill func(), says func() string) {
	cmd := exec.CommandContext(background(t), args[0], args[1:]...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return func() { _ = cmd.Process.Kill() }, func() string {
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err, line)
		return line
	}
}

// cPacket writes packet n as ring_peer.c does.
func cPacket(p []byte, n uint64) []byte {
	p = p[:8+n*37%uint64(len(p)-7)]
	binary.LittleEndian.PutUint64(p, n)
	for at := 8; at+8 <= len(p); at += 512 {
		binary.LittleEndian.PutUint64(p[at:], n*0x9e3779b97f4a7c15+uint64(at))
	}
	return p
}

// requireC compares packet n with what cPacket writes.
func requireC(t *testing.T, p, scratch []byte, n uint64) {
	want := cPacket(scratch, n)
	require.Len(t, p, len(want))
	require.Equal(t, n, binary.LittleEndian.Uint64(p))
	for at := 8; at+8 <= len(p); at += 512 {
		require.Equal(t, want[at:at+8], p[at:at+8], "packet %d", n)
	}
}

// TestStreamToC: C reads what Go writes, to the end.
func TestStreamToC(t *testing.T) {
	ctx := background(t)
	program := cPeer(t)
	for _, wait := range []Wait{Adaptive, Park} {
		r := create(t, Config{Packets: 5, PacketSize: unix.Getpagesize(), Wait: wait})
		_, says := runC(t, program, "read", r.Name())
		w, err := r.Writer(ctx)
		require.NoError(t, err)
		for n := range uint64(5000) {
			require.NoError(t, w.Commit(ctx, len(cPacket(w.Reserve(), n))))
		}
		require.NoError(t, w.Flush(ctx))
		require.NoError(t, w.Close())
		require.Equal(t, "5000 "+unix.ENODATA.Error()+"\n", lower(says()))
	}
}

// lower is s as Go writes the text of an errno.
func lower(s string) string {
	for i := range s {
		if s[i] >= 'A' && s[i] <= 'Z' {
			return s[:i] + string(s[i]+'a'-'A') + s[i+1:]
		}
	}
	return s
}

// TestStreamFromC: Go reads what C writes, to the end.
func TestStreamFromC(t *testing.T) {
	ctx := background(t)
	program := cPeer(t)
	for _, wait := range []Wait{Adaptive, Park} {
		r := create(t, Config{Packets: 5, PacketSize: unix.Getpagesize(), Wait: wait})
		_, says := runC(t, program, "write", r.Name(), strconv.Itoa(5000))
		d, err := r.Reader(ctx)
		require.NoError(t, err)
		scratch := make([]byte, r.Payload())
		for n := range uint64(5000) {
			p, err := d.Peek(ctx)
			require.NoError(t, err)
			requireC(t, p, scratch, n)
			d.Release()
		}
		_, err = d.Peek(ctx)
		require.ErrorIs(t, err, EOF)
		require.Equal(t, "5000 done\n", says())
	}
}

// TestCPeersEnd: deaths and nonsense between C and Go, in both roles.
func TestCPeersEnd(t *testing.T) {
	ctx := background(t)
	program := cPeer(t)
	t.Run("no ring", func(t *testing.T) {
		_, says := runC(t, program, "read", newName())
		require.Equal(t, "0 "+unix.ENOENT.Error()+"\n", lower(says()))
	})
	t.Run("taken", func(t *testing.T) {
		r := create(t, Config{})
		pair(t, r)
		_, says := runC(t, program, "read", r.Name())
		require.Equal(t, "0 "+unix.EBUSY.Error()+"\n", lower(says()))
	})
	t.Run("the C writer is killed", func(t *testing.T) {
		r := create(t, Config{})
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
			if n == 500 {
				kill()
			}
		}
		require.ErrorIs(t, err, ErrPeerDied)
	})
	t.Run("the creator goes", func(t *testing.T) {
		r, err := Create(newName(), Config{})
		require.NoError(t, err)
		_, says := runC(t, program, "read", r.Name())
		w, err := r.Writer(ctx)
		require.NoError(t, err)
		require.NoError(t, w.Commit(ctx, len(cPacket(w.Reserve(), 0))))
		require.NoError(t, w.Flush(ctx))
		require.NoError(t, r.Close())
		// The writer's close or the end of the socket: whichever it sees first.
		require.Contains(t, []string{"1 " + unix.ENODATA.Error() + "\n", "1 " + unix.ECONNRESET.Error() + "\n"}, lower(says()))
	})
	t.Run("the Go writer lies", func(t *testing.T) {
		r := create(t, Config{Packets: 5})
		_, says := runC(t, program, "read", r.Name())
		w, err := r.Writer(ctx)
		require.NoError(t, err)
		require.NoError(t, w.Commit(ctx, len(cPacket(w.Reserve(), 0))))
		require.NoError(t, w.Flush(ctx))
		w.move(1 << 40)
		require.Equal(t, "1 "+unix.EPROTO.Error()+"\n", lower(says()))
	})
	t.Run("the Go reader lies", func(t *testing.T) {
		r := create(t, Config{Packets: 5})
		d, err := r.Reader(ctx)
		require.NoError(t, err)
		_, says := runC(t, program, "write", r.Name(), "1000")
		_, err = d.Peek(ctx)
		require.NoError(t, err)
		d.move(1 << 40)
		require.Contains(t, lower(says()), unix.EPROTO.Error())
	})
}
