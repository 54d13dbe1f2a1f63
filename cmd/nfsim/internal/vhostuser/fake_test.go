package vhostuser_test

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostuser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Of the fake's config space and BAR 1.
const (
	capability = 0x50
	pendingAt  = 0x800
)

// memory is a Device that is nothing but memory, with an MSI-X capability.
type memory struct {
	t testing.TB

	mu      sync.Mutex
	regions map[int][]byte
	files   [3]int // eventfds of vectors
	mapped  []vfiouser.Mapping
	fail    error // of all accesses to BAR 0
}

func newMemory(t testing.TB) *memory {
	d := &memory{t: t, files: [3]int{-1, -1, -1}, regions: map[int][]byte{
		0: make([]byte, 4096), 1: make([]byte, 4096), 2: make([]byte, 1<<16), vfiouser.RegionConfig: make([]byte, 4096),
	}}
	config := d.regions[vfiouser.RegionConfig]
	copy(config, "\x34\x12\x46\x4e")
	copy(config[0x34:], "\x40")
	copy(config[0x40:], []byte{1, capability})
	copy(config[capability:], []byte{0x11, 0, 2, 0, 1, 0, 0, 0, 1, 8, 0, 0}) // 3 vectors, in BAR 1
	return d
}

func (d *memory) Region(index int) vfiouser.Region {
	return vfiouser.Region{Size: uint64(len(d.regions[index])), Read: true, Write: true}
}

func (d *memory) Vectors() int { return len(d.files) }

// access moves bytes; the contract says that they are there.
func (d *memory) access(index int, offset uint64, n int, move func(r []byte)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.regions[index]
	require.Positive(d.t, n)
	require.True(d.t, offset <= uint64(len(r)) && uint64(n) <= uint64(len(r))-offset)
	if index == 0 && d.fail != nil {
		return d.fail
	}
	move(r[offset:])
	return nil
}

func (d *memory) ReadRegion(index int, offset uint64, p []byte) error {
	return d.access(index, offset, len(p), func(r []byte) { copy(p, r) })
}

func (d *memory) WriteRegion(index int, offset uint64, p []byte) error {
	return d.access(index, offset, len(p), func(r []byte) { copy(r, p) })
}

// poke changes a region, and says what accesses of BAR 0 fail with.
func (d *memory) poke(index int, offset uint64, p []byte, fail error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(d.regions[index][offset:], p)
	d.fail = fail
}

// ranges returns what is mapped.
func (d *memory) ranges() []vfiouser.Mapping {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mapped)
}

func (d *memory) MapDMA(m vfiouser.Mapping) error {
	var st unix.Stat_t
	require.NoError(d.t, unix.Fstat(m.File, &st))
	if m.Offset > uint64(st.Size) || m.Size > uint64(st.Size)-m.Offset || m.Size == 0 {
		return unix.EINVAL
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m.File = 0
	d.mapped = append(d.mapped, m)
	return nil
}

func (d *memory) UnmapAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mapped = nil
}

func (d *memory) AssignIRQ(vector, file int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	d.files[vector], err = unix.Dup(file)
	return err
}

// close closes the eventfds.
func (d *memory) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.files {
		_ = unix.Close(f) // -1: none was assigned
	}
}

// fire interrupts through a vector.
func (d *memory) fire(vector int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := unix.Write(d.files[vector], []byte{1, 0, 0, 0, 0, 0, 0, 0})
	require.NoError(d.t, err)
}

// rig is a server with a client.
type rig struct {
	*vhostclient.Client
	dev  *memory
	conn *Conn
	ends chan error
}

// newRig makes a client that has not said anything yet.
func newRig(t testing.TB) *rig {
	t.Helper()
	client, server, err := vfioclient.Pair()
	require.NoError(t, err)
	dev := newMemory(t)
	r := &rig{dev: dev, conn: NewConn(server, dev, slog.New(slog.DiscardHandler)), ends: make(chan error, 1)}
	go func() { r.ends <- r.conn.Serve() }()
	r.Client, err = vhostclient.New(client)
	require.NoError(t, err)
	return r
}

// ready makes a client whose queues and BARs work; it must end in peace.
func ready(t testing.TB) *rig {
	t.Helper()
	r := newRig(t)
	require.NoError(t, r.Setup())
	require.NoError(t, r.Write(vhostclient.ConfigWrite, 0, 4, []byte{2, 0}))
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		require.NoError(t, <-r.ends)
		r.dev.close()
	})
	return r
}

// refused ends a client: the server must have hung up.
func (r *rig) refused(t testing.TB) {
	t.Helper()
	err := <-r.ends
	require.ErrorIs(t, err, ErrMalformed)
	require.NoError(t, r.Close())
	r.dev.close()
}

// descriptors counts those of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

var errWidth = errors.New("not that wide")
