//go:build cgo

package hosts

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// memoryFabric has one window, of key 1, in this process; one of key 2 that never answers, and a
// third that can not be.
type memoryFabric struct {
	Fabric
	mu     sync.Mutex
	memory [2 * shmwire.AccessData]byte
	stuck  atomic.Int32 // under way at the second
	most   atomic.Int32 // at once
}

func (f *memoryFabric) wait(ctx context.Context) error {
	f.mu.Lock()
	f.most.Store(max(f.most.Load(), f.stuck.Add(1)))
	f.mu.Unlock()
	defer f.stuck.Add(-1)
	<-ctx.Done()
	return ctx.Err()
}

func (f *memoryFabric) access(ctx context.Context, w bridge.FabricWindow, do func()) error {
	switch w.Key {
	case 1:
		f.mu.Lock()
		defer f.mu.Unlock()
		do()
		return nil
	case 2:
		return f.wait(ctx)
	}
	return bridge.ErrNotSubscribed
}

func (f *memoryFabric) Put(ctx context.Context, to bridge.FabricWindow, offset uint64, data []byte) error {
	return f.access(ctx, to, func() { copy(f.memory[offset:], data) })
}

func (f *memoryFabric) Get(ctx context.Context, from bridge.FabricWindow, offset uint64, buf []byte) error {
	return f.access(ctx, from, func() { copy(buf, f.memory[offset:]) })
}

// rawAccess is a client's end of the socket.
type rawAccess struct {
	t    *testing.T
	conn *net.UnixConn
	*accesses
}

func newRawAccess(t *testing.T, f Fabric) *rawAccess {
	t.Helper()
	a, file, err := newAccesses(f)
	require.NoError(t, err)
	conn, err := net.FileConn(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	t.Cleanup(func() {
		a.end()
		_ = conn.Close()
	})
	return &rawAccess{t, conn.(*net.UnixConn), a}
}

func (r *rawAccess) send(m shmwire.Access, data string) {
	r.t.Helper()
	_, err := r.conn.Write(append(m.Encode(), data...))
	require.NoError(r.t, err)
}

// answer reads the next one.
func (r *rawAccess) answer() (shmwire.Access, string) {
	r.t.Helper()
	b := make([]byte, shmwire.AccessSize+shmwire.AccessData+1)
	n, err := r.conn.Read(b)
	require.NoError(r.t, err)
	m, data, err := shmwire.ParseAnswer(b[:n])
	require.NoError(r.t, err)
	return m, string(data)
}

var window, deaf, none = bridge.FabricWindow{Key: 1}, bridge.FabricWindow{Key: 2}, bridge.FabricWindow{Key: 3}

// TestAccesses: each is answered when it ends, whatever others do, and ends when it is withdrawn.
func TestAccesses(t *testing.T) {
	f := &memoryFabric{}
	r := newRawAccess(t, f)
	r.send(shmwire.Access{Kind: shmwire.Put, Number: 9, Window: deaf, Size: 1}, "x")
	r.send(shmwire.Access{Kind: shmwire.Put, Number: 1, Window: window, Size: 3, Offset: 5}, "abc")
	m, _ := r.answer()
	require.Equal(t, shmwire.Access{Kind: shmwire.Put, Number: 1, Window: window, Size: 3, Offset: 5}, m)
	r.send(shmwire.Access{Kind: shmwire.Get, Number: 1, Window: window, Size: 4, Offset: 4}, "")
	_, data := r.answer()
	require.Equal(t, "\x00abc", data)
	r.send(shmwire.Access{Kind: shmwire.Get, Number: 2, Window: none, Size: 4}, "")
	m, data = r.answer()
	require.Equal(t, abi.ErrNoTarget, m.Status)
	require.Empty(t, data)
	r.send(shmwire.Access{Kind: shmwire.Withdraw, Number: 4711}, "") // none, any more
	r.send(shmwire.Access{Kind: shmwire.Withdraw, Number: 9}, "")
	m, _ = r.answer()
	require.EqualValues(t, 9, m.Number)
	require.Equal(t, abi.ErrWithdrawn, m.Status)
}

// TestForeignAccesses: what is no request ends the socket and what is under way there.
func TestForeignAccesses(t *testing.T) {
	for name, bad := range map[string][]byte{
		"short":        []byte("no request"),
		"kind":         (&shmwire.Access{Kind: 7, Number: 2}).Encode(),
		"no bytes":     (&shmwire.Access{Kind: shmwire.Put, Number: 2, Size: 5}).Encode(),
		"too large":    (&shmwire.Access{Kind: shmwire.Get, Number: 2, Size: shmwire.AccessData + 1}).Encode(),
		"under way":    (&shmwire.Access{Kind: shmwire.Get, Number: 1, Size: 1, Window: window}).Encode(),
		"is an answer": (&shmwire.Access{Kind: shmwire.Put, Number: 2, Status: abi.ErrRange}).Encode(),
		"longer":       make([]byte, 2*shmwire.AccessData),
	} {
		t.Run(name, func(t *testing.T) {
			f := &memoryFabric{}
			r := newRawAccess(t, f)
			r.send(shmwire.Access{Kind: shmwire.Get, Number: 1, Window: deaf, Size: 1}, "")
			_, err := r.conn.Write(bad)
			require.NoError(t, err)
			<-r.read
			ended(t, r.conn)
			r.end()
			require.Zero(t, f.stuck.Load())
		})
	}
}

// TestGreedyAccesses: a client that asks for more than it may, and one that reads no answers, has
// so many under way and no more, and keeps nobody from ending.
func TestGreedyAccesses(t *testing.T) {
	f := &memoryFabric{}
	for _, w := range []bridge.FabricWindow{deaf, window} {
		r := newRawAccess(t, f)
		require.NoError(t, r.conn.SetWriteBuffer(1<<20))
		raw, err := r.conn.SyscallConn()
		require.NoError(t, err)
		number := uint32(0)
		for full := false; !full; number++ {
			m := shmwire.Access{Kind: shmwire.Get, Number: number, Window: w, Size: shmwire.AccessData}
			require.NoError(t, raw.Write(func(fd uintptr) bool {
				_, err := syscall.Write(int(fd), m.Encode())
				full = err != nil // nobody takes more
				return true
			}))
		}
		require.Greater(t, number, uint32(shmwire.AccessMost))
		if w == deaf {
			require.Eventually(t, func() bool { return f.stuck.Load() >= shmwire.AccessMost }, time.Minute, time.Millisecond)
		}
		r.end()
	}
	require.Zero(t, f.stuck.Load())
	require.EqualValues(t, shmwire.AccessMost, f.most.Load())
}
