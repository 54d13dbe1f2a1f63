//go:build linux

package shm

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// accessOf returns puts and gets that a test answers, and its end of their socket.
func accessOf(t *testing.T) (*access, *net.UnixConn) {
	t.Helper()
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	var conns [2]*net.UnixConn
	for i, fd := range ends {
		file := os.NewFile(uintptr(fd), "test")
		conn, err := net.FileConn(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		conns[i] = conn.(*net.UnixConn)
	}
	a := newAccess(conns[0])
	t.Cleanup(func() {
		a.end()
		_ = conns[1].Close()
	})
	return a, conns[1]
}

// TestLyingDevice: an answer that none can be ends all puts and gets; nothing is written but the
// bytes that were asked for.
func TestLyingDevice(t *testing.T) {
	for name, lie := range map[string]func(r shmwire.Access) []byte{
		"nobody asked": func(r shmwire.Access) []byte { r.Number++; return append(r.Encode(), make([]byte, r.Size)...) },
		"too many":     func(r shmwire.Access) []byte { r.Size++; return append(r.Encode(), make([]byte, r.Size)...) },
		"too few":      func(r shmwire.Access) []byte { r.Size--; return append(r.Encode(), make([]byte, r.Size)...) },
		"of a put":     func(r shmwire.Access) []byte { r.Kind = shmwire.Put; return r.Encode() },
		"no answer":    func(shmwire.Access) []byte { return []byte("nonsense") },
		"withdraw":     func(r shmwire.Access) []byte { r.Kind = shmwire.Withdraw; return r.Encode() },
	} {
		t.Run(name, func(t *testing.T) {
			a, device := accessOf(t)
			ended := make(chan error)
			whole := make([]byte, 20)
			go func() { ended <- a.do(t.Context(), shmwire.Access{Kind: shmwire.Get}, whole[:10]) }()
			b := make([]byte, shmwire.AccessSize)
			_, err := device.Read(b)
			require.NoError(t, err)
			r, _, err := shmwire.ParseRequest(b)
			require.NoError(t, err)
			_, err = device.Write(lie(r))
			require.NoError(t, err)
			require.Error(t, <-ended)
			require.Equal(t, make([]byte, 10), whole[10:])
			err = a.do(t.Context(), shmwire.Access{Kind: shmwire.Put}, nil)
			require.ErrorIs(t, err, bridge.ErrDeviceLost)
		})
	}
}

// TestAccessWithdrawn: who gives up tells the device, and waits until it has ended the request.
func TestAccessWithdrawn(t *testing.T) {
	a, device := accessOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.do(ctx, shmwire.Access{Kind: shmwire.Put}, make([]byte, 10)) }()
	next := func() shmwire.Access {
		b := make([]byte, 2*shmwire.AccessSize)
		n, err := device.Read(b)
		require.NoError(t, err)
		r, _, err := shmwire.ParseRequest(b[:n])
		require.NoError(t, err)
		return r
	}
	r := next()
	cancel()
	w := next()
	require.Equal(t, shmwire.Access{Kind: shmwire.Withdraw, Number: r.Number}, w)
	r.Status = abi.ErrWithdrawn
	_, err := device.Write(r.Encode())
	require.NoError(t, err)
	require.Equal(t, context.Canceled, <-ended)
	require.NoError(t, a.settle(t.Context())) // the call may have left before the answer
	require.Empty(t, a.places)
}

// TestEndedContextHarmsNoOther: a context that ends as its message is out ends no message that follows.
func TestEndedContextHarmsNoOther(t *testing.T) {
	a, device := accessOf(t)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer a.end()
	reading.Go(func() {
		for b, err := make([]byte, shmwire.AccessSize), error(nil); err == nil; {
			_, err = device.Read(b)
		}
	})
	m := shmwire.Access{Kind: shmwire.Withdraw}
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if err := a.send(ctx, net.Buffers{m.Encode()}); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.NoError(t, a.send(t.Context(), net.Buffers{m.Encode()}))
		require.NoError(t, a.broken)
	}
}
