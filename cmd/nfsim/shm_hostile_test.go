//go:build cgo

package main

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// stranger is a client that keeps to no rule.
type stranger struct {
	conn *net.UnixConn
	mem  []byte // its area …
	area int    // … and where it is from
	bell int
}

// newStranger becomes a client; nil if the device has no place for it now.
func newStranger(t *testing.T, address string) *stranger {
	c, err := net.DialUnix(shmwire.Network, nil, &net.UnixAddr{Name: address[len("shm:"):], Net: shmwire.Network})
	if !assert.NoError(t, err) {
		return nil
	}
	if !assert.NoError(t, shmwire.Send(c, &shmwire.Message{Kind: shmwire.Hello})) {
		return nil
	}
	m, files, err := shmwire.Receive(c, func(m *shmwire.Message) int { return map[bool]int{true: 2}[m.Status == 0] })
	if err != nil || m.Status != 0 {
		_ = c.Close()
		return nil
	}
	mem, err := syscall.Mmap(files[0], 0, int(m.Size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if !assert.NoError(t, err) {
		return nil
	}
	return &stranger{conn: c, mem: mem, area: files[0], bell: files[1]}
}

func (s *stranger) leave() {
	_ = syscall.Munmap(s.mem)
	_ = syscall.Close(s.area)
	_ = syscall.Close(s.bell)
	_ = s.conn.Close()
}

// scribble writes nonsense over the whole area, wakes the device for each page of it, and
// fills the socket of doorbells from its wrong end.
func (s *stranger) scribble(seed uint64) {
	area := wordsOf(s.mem)
	for i := range area {
		seed = seed*6364136223846793005 + 1442695040888963407
		atomic.StoreUint64(&area[i], seed>>(seed>>58&31))
		if i%512 == 0 {
			wakeIsland(s.mem)
			_, _ = unix.Write(s.bell, []byte("ring ring")) // full, some time
		}
	}
}

// cut tries to take the area away from the device: its size stays, its pages may be lost.
func (s *stranger) cut(t *testing.T) {
	assert.Error(t, unix.Ftruncate(s.area, 0))
	assert.Error(t, unix.Ftruncate(s.area, 2*int64(len(s.mem))))
	_ = unix.Fallocate(s.area, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(s.mem)))
	wakeIsland(s.mem)
}

// pester makes requests that are answered, refused or end the connection.
func (s *stranger) pester(memory int) bool {
	for _, m := range []shmwire.Message{
		{Kind: shmwire.Map, Address: 1 << 40, Size: 1 << 20}, {Kind: shmwire.Map, Address: 1<<40 + 4096, Size: 1 << 20}, {Kind: shmwire.Fence},
		{Kind: shmwire.Unmap, Address: 1 << 41, Size: 4096}, {Kind: shmwire.Unmap, Address: 1 << 40, Size: 1 << 20}, {Kind: shmwire.Map, Size: 1 << 60},
		{Kind: shmwire.Expose, Address: 1 << 40, Size: 1 << 20}, {Kind: shmwire.Fetch, Address: 1 << 40},
	} {
		var files []int
		if m.Kind == shmwire.Map || m.Kind == shmwire.Expose {
			files = []int{memory}
		}
		if shmwire.Send(s.conn, &m, files...) != nil {
			return false
		}
		if _, _, err := shmwire.Receive(s.conn, func(*shmwire.Message) int { return 0 }); err != nil {
			return false
		}
	}
	return true
}

// TestHostileNeighbours: clients that write nonsense over their areas, cut them and ring all the
// time, that map, fence and unmap without end, or connect and close, keep another from nothing.
func TestHostileNeighbours(t *testing.T) {
	address := shareDevice(t, "")
	dev, err := bridge.Open(t.Context(), address, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	memory, err := unix.MemfdCreate("stranger", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	defer unix.Close(memory)
	require.NoError(t, unix.Ftruncate(memory, 1<<20))
	require.NoError(t, shmwire.Seal(memory))
	var over atomic.Bool
	var strangers sync.WaitGroup
	for _, act := range []func(*stranger, uint64) bool{
		func(s *stranger, seed uint64) bool { s.scribble(seed); return true },
		func(s *stranger, _ uint64) bool { return s.pester(memory) },
		func(s *stranger, seed uint64) bool { s.cut(t); s.scribble(seed); return true },
		func(*stranger, uint64) bool { return false }, // connects and closes
	} {
		strangers.Go(func() {
			for n := uint64(1); !over.Load(); n++ {
				s := newStranger(t, address)
				for s != nil && !over.Load() && act(s, n) {
					n++
				}
				if s != nil {
					s.leave()
				}
			}
		})
	}
	loop := port(t, dev, "loopback")
	buf := make([]byte, 100_000)
	for i := range uint64(100) {
		require.NoError(t, echo(t.Context(), loop, buf, i))
	}
	over.Store(true)
	strangers.Wait()
	h, err := dev.Health()
	require.NoError(t, err)
	require.Zero(t, h.Dropped, "what the others sent is not ours")
}
