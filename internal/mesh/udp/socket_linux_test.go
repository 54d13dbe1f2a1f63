//go:build cgo

package udp

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// mergedPair is a socket that merges, and one that sends to it.
func mergedPair(t *testing.T) (to *merging, from *net.UDPConn) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	to, ok := merge(conn).(*merging)
	require.True(t, ok, "the kernel merges no datagrams")
	from, err = net.DialUDP("udp", nil, conn.LocalAddr().(*net.UDPAddr))
	require.NoError(t, err)
	t.Cleanup(func() { from.Close() })
	require.NoError(t, to.SetReadDeadline(time.Now().Add(watchdog)))
	return to, from
}

// segment has the kernel part what a socket sends into datagrams of a size, as QUIC does; 0: not.
func segment(t *testing.T, from *net.UDPConn, size int) {
	t.Helper()
	raw, err := from.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size))
	}))
}

// sendSegments sends b as datagrams of a size, at once.
func sendSegments(t *testing.T, from *net.UDPConn, b []byte, size int) {
	t.Helper()
	segment(t, from, size)
	_, err := from.Write(b)
	require.NoError(t, err)
	segment(t, from, 0)
}

// readAll reads datagrams until there are count, some at a time, into buffers of a size.
func readAll(t *testing.T, to *merging, count, atOnce, size int) (all [][]byte) {
	t.Helper()
	for len(all) < count {
		messages := make([]ipv4.Message, atOnce)
		for i := range messages {
			messages[i] = ipv4.Message{Buffers: [][]byte{make([]byte, size)}, OOB: make([]byte, 128)}
		}
		n, err := to.ReadBatch(messages, 0)
		require.NoError(t, err)
		require.NotZero(t, n)
		for _, m := range messages[:n] {
			all = append(all, m.Buffers[0][:m.N])
			for control := m.OOB[:m.NN]; len(control) > 0; {
				header, _, rest, err := unix.ParseOneSocketControlMessage(control)
				require.NoError(t, err)
				require.NotEqual(t, int32(unix.IPPROTO_UDP), header.Level, "of all of them")
				control = rest
			}
		}
	}
	return all
}

// TestMergedDatagrams: each comes by itself, as long as it was, in order, whatever came together.
func TestMergedDatagrams(t *testing.T) {
	to, from := mergedPair(t)
	raw, err := to.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_RECVTOS, 1))
	}))
	var want [][]byte
	part := func(b []byte, size int) {
		for len(b) > 0 {
			n := min(size, len(b))
			want = append(want, b[:n])
			b = b[n:]
		}
	}
	for round, c := range []struct{ bytes, size int }{
		{13*1452 + 1, 1452}, {1452, 1452}, {20 * 1200, 1200}, {5, 1}, {1400, 1400}, {3*1300 + 1299, 1300},
	} {
		b := make([]byte, c.bytes)
		for i := range b {
			b[i] = byte(i*7 + round)
		}
		sendSegments(t, from, b, c.size)
		part(b, c.size)
		_, err := from.Write(nil) // a datagram without bytes is nothing
		require.NoError(t, err)
	}
	got := readAll(t, to, len(want), 8, 1452)
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.True(t, bytes.Equal(want[i], got[i]), "datagram %d: %d bytes, want %d", i, len(got[i]), len(want[i]))
	}
	require.Equal(t, from.LocalAddr().String(), to.from.String())
}

// TestLongDatagrams: one that is longer than any of QUIC's is cut, and what follows is not touched.
func TestLongDatagrams(t *testing.T) {
	to, from := mergedPair(t)
	long := bytes.Repeat([]byte{1}, 60000)
	_, err := from.Write(long)
	require.NoError(t, err)
	sendSegments(t, from, bytes.Repeat([]byte{2}, 9000), 3000)
	_, err = from.Write([]byte{3})
	require.NoError(t, err)
	got := readAll(t, to, 5, 2, 1452)
	require.Equal(t, [][]byte{long[:1452], bytes.Repeat([]byte{2}, 1452), bytes.Repeat([]byte{2}, 1452), bytes.Repeat([]byte{2}, 1452), {3}}, got)
}

// TestMergedSocketEnds: who waits for datagrams is told when the socket is closed.
func TestMergedSocketEnds(t *testing.T) {
	to, _ := mergedPair(t)
	ended := make(chan error, 1)
	go func() {
		_, err := to.ReadBatch([]ipv4.Message{{Buffers: [][]byte{make([]byte, 1)}}}, 0)
		ended <- err
	}()
	require.NoError(t, to.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
}
