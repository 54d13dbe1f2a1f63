package vfiouser_test

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Device that is nothing but memory, and notes its calls.
type memory struct {
	mu      sync.Mutex
	regions map[int][]byte
	file    int // of region 2
	said    []string
	fail    error // of the next call
	wait    chan struct{}
}

func newMemory() *memory {
	return &memory{file: -1, regions: map[int][]byte{
		0: make([]byte, 4096), 2: make([]byte, 8192), RegionConfig: make([]byte, 256),
	}}
}

func (d *memory) say(format string, args ...any) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, fmt.Sprintf(format, args...))
	err := d.fail
	d.fail = nil
	return err
}

// failNext makes the next call fail.
func (d *memory) failNext(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// heard returns what was said since the last call.
func (d *memory) heard() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	said := d.said
	d.said = nil
	return said
}

func (d *memory) Region(index int) Region {
	r := Region{Size: uint64(len(d.regions[index])), Read: true, Write: true}
	if index == 2 && d.file >= 0 {
		r.Map, r.File = true, d.file
	}
	if r.Size == 0 {
		return Region{}
	}
	return r
}

func (d *memory) Vectors() int { return 3 }

func (d *memory) ReadRegion(index int, offset uint64, p []byte) error {
	copy(p, d.regions[index][offset:])
	return d.say("read %d %#x %d", index, offset, len(p))
}

func (d *memory) WriteRegion(index int, offset uint64, p []byte) error {
	copy(d.regions[index][offset:], p)
	return d.say("write %d %#x %d", index, offset, len(p))
}

func (d *memory) MapDMA(m Mapping) error {
	return d.say("map %#x+%#x at %#x read %v write %v file %v", m.Address, m.Size, m.Offset, m.Read, m.Write, m.File >= 0)
}

func (d *memory) UnmapDMA(address, size uint64) error {
	if d.wait != nil {
		<-d.wait
	}
	return d.say("unmap %#x+%#x", address, size)
}
func (d *memory) UnmapAll() { _ = d.say("unmap all") }
func (d *memory) AssignIRQ(vector, file int) error {
	return d.say("vector %d file %v", vector, file >= 0)
}
func (d *memory) TriggerIRQ(vector int) { _ = d.say("fire %d", vector) }
func (d *memory) Reset() error          { return d.say("reset") }

// rig is a server with a client.
type rig struct {
	*vfioclient.Client
	dev  *memory
	conn *Conn
	ends chan error
}

func newRig(t testing.TB, dev *memory, memory vfioclient.Memory) *rig {
	t.Helper()
	client, server, err := vfioclient.Pair()
	require.NoError(t, err)
	r := &rig{dev: dev, conn: NewConn(server, dev, quiet), ends: make(chan error, 1)}
	go func() { r.ends <- r.conn.Serve() }()
	r.Client = vfioclient.New(client, memory)
	return r
}

// greeted is newRig past the version.
func greeted(t testing.TB) *rig {
	t.Helper()
	r := newRig(t, newMemory(), nil)
	_, err := r.Version()
	require.NoError(t, err)
	t.Cleanup(func() { r.hangUp(t) })
	return r
}

// hangUp ends the client; the server must find nothing wrong with that.
func (r *rig) hangUp(t testing.TB) {
	t.Helper()
	require.NoError(t, r.Close())
	require.NoError(t, <-r.ends)
}

// descriptors counts those of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// files makes n descriptors, closed when the test ends.
func files(t testing.TB, n int) []int {
	t.Helper()
	var all []int
	for range n {
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		all = append(all, int(f.Fd()))
	}
	return all
}

var quiet = slog.New(slog.DiscardHandler)
