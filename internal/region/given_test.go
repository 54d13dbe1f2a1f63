package region

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// exposer is what hosts of one process expose to each other.
type exposer struct {
	mu      sync.Mutex
	exposed map[uint64][]byte
	asked   int // requests of any host
	wiped   int
}

// giver is the mapper of such a host.
type giver struct {
	*mapper
	*exposer
	fails error
}

func (g *giver) Make(size int) ([]byte, error) {
	g.asked++
	pages := (size + abi.PageSize - 1) / abi.PageSize
	return make([]byte, pages*abi.PageSize), g.fails
}

func (g *giver) Expose(mem []byte) (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	key := uint64(len(g.exposed) + 1)
	g.exposed[key] = mem
	return key, g.fails
}

func (g *giver) Fetch(key uint64) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	if mem, ok := g.exposed[key]; ok {
		return mem, g.fails
	}
	return nil, bridge.ErrInvalid
}

func (g *giver) Drop(mem []byte, wipe bool) {
	if wipe {
		g.wiped++
		clear(mem[abi.PageSize:])
	}
}

// twoHosts give each other memory.
func twoHosts() (a, b *Table, l *exposer) {
	l = &exposer{exposed: make(map[uint64][]byte)}
	host := func() *Table {
		t, m := newTable()
		t.Init(&giver{mapper: m, exposer: l})
		return t
	}
	return host(), host(), l
}

// give has one host give a region to another.
func give(t *testing.T, from, to *Table, r bridge.Region) bridge.Region {
	t.Helper()
	p, err := from.Give(r, 1)
	require.NoError(t, err)
	got, err := to.Take(p.Key, p.Ticket, p.Size)
	require.NoError(t, err)
	require.True(t, p.Settle())
	require.Nil(t, r.Bytes())
	require.NoError(t, r.Close())
	_, err = from.Give(r, 1)
	require.ErrorIs(t, err, bridge.ErrMoved)
	return got
}

// TestGive: memory goes to and fro. Its bytes are copied once, and nobody is asked for what both know.
func TestGive(t *testing.T) {
	a, b, l := twoHosts()
	first, err := a.Alloc(100)
	require.NoError(t, err)
	r := first
	copy(r.Bytes(), "here")
	r = give(t, a, b, r)
	require.Equal(t, "here", string(r.Bytes()[:4]))
	require.Len(t, r.Bytes(), 100)
	copy(r.Bytes(), "back")
	there := r.Bytes()
	r = give(t, b, a, r)
	asked := l.asked
	for range 100 {
		_, err = b.Use(there)
		require.ErrorIs(t, err, bridge.ErrMoved)
		r = give(t, a, b, r)
		used, err := b.Use(there)
		require.NoError(t, err)
		require.ErrorIs(t, r.Close(), bridge.ErrBusy)
		_, err = b.Give(r, 1)
		require.ErrorIs(t, err, bridge.ErrBusy)
		used.Done()
		r = give(t, b, a, r)
	}
	require.Equal(t, asked, l.asked)
	require.Equal(t, "back", string(r.Bytes()[:4]))
	var s bridge.Stats
	a.AddTo(&s)
	b.AddTo(&s)
	require.EqualValues(t, 1, s.Regions)
	require.NoError(t, r.Close())
	require.Equal(t, 1, l.wiped)
	require.Nil(t, a.sorted.Load())
	b.sweep()
	require.Nil(t, b.sorted.Load())
	require.Empty(t, b.byKey)
	_, err = b.Use(there)
	require.NoError(t, err)
}

// TestGiveLarge: large memory is in a file from the start, and no byte of it is ever copied.
func TestGiveLarge(t *testing.T) {
	a, b, l := twoHosts()
	r, err := a.Alloc(ownFile)
	require.NoError(t, err)
	at := &r.Bytes()[0]
	r = give(t, a, b, r)
	require.Same(t, at, &r.Bytes()[0])
	r = give(t, b, a, r)
	p, err := a.Give(r, 1)
	require.NoError(t, err)
	require.False(t, p.Settle())
	require.Same(t, at, &r.Bytes()[0])
	require.Len(t, r.Bytes(), ownFile)
	require.NoError(t, r.Close())
	require.Equal(t, 1, l.wiped)
	a.mapper.(*giver).fails = bridge.ErrNotSupported
	r, err = a.Alloc(ownFile)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	a.End()
	_, err = a.Alloc(ownFile)
	require.ErrorIs(t, err, bridge.ErrClosed)
}

// TestGiveNobody: what nobody takes is the sender's as it was, under the same addresses.
func TestGiveNobody(t *testing.T) {
	a, b, l := twoHosts()
	r, err := a.Alloc(5000)
	require.NoError(t, err)
	mem := r.Bytes()
	refuse := func(r bridge.Region) {
		maps := b.mapper.(*giver).next
		p, err := a.Give(r, 1)
		require.NoError(t, err)
		_, err = a.Give(r, 1)
		require.ErrorIs(t, err, bridge.ErrBusy)
		require.ErrorIs(t, r.Close(), bridge.ErrBusy)
		_, err = b.Take(p.Key, p.Ticket, uint64(8192+1))
		require.ErrorIs(t, err, bridge.ErrAborted, "more than there is")
		_, err = b.Take(p.Key+100, p.Ticket, p.Size)
		require.ErrorIs(t, err, bridge.ErrAborted, "another key")
		_, err = b.Take(p.Key, p.Ticket+2, p.Size)
		require.ErrorIs(t, err, bridge.ErrAborted, "another ticket")
		require.False(t, p.Settle())
		require.False(t, p.Settle())
		_, err = b.Take(p.Key, p.Ticket, p.Size)
		require.ErrorIs(t, err, bridge.ErrAborted, "late")
		require.Equal(t, maps, b.mapper.(*giver).next, "what is not to be had is not mapped for the device")
		used, err := a.Use(r.Bytes())
		require.NoError(t, err)
		used.Done()
	}
	refuse(r)
	require.Same(t, &mem[0], &r.Bytes()[0])
	r = give(t, a, b, r)
	r = give(t, b, a, r)
	refuse(r)
	p, err := a.Give(r, 1)
	require.NoError(t, err)
	got, err := a.Take(p.Key, p.Ticket, p.Size) // from itself
	require.NoError(t, err)
	require.True(t, p.Settle())
	require.NoError(t, got.Close())
	require.Nil(t, a.sorted.Load())

	own, err := a.Register(make([]byte, 10))
	require.NoError(t, err)
	_, err = a.Give(own, 1)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	_, err = b.Give(own, 1)
	require.ErrorIs(t, err, bridge.ErrInvalid)
	require.NoError(t, own.Close())
	_, err = a.Give(own, 1)
	require.ErrorIs(t, err, bridge.ErrClosed)
	plain, _ := newTable()
	r, err = plain.Alloc(10)
	require.NoError(t, err)
	_, err = plain.Give(r, 1)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	require.NoError(t, r.Close())
	r, err = a.Alloc(10)
	require.NoError(t, err)
	a.mapper.(*giver).fails = bridge.ErrNoMemory
	_, err = a.Give(r, 1)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.NoError(t, r.Close())
	require.NotZero(t, l.wiped)
}

// TestGiveForOne: taking and taking back run beside each other, and one of them has the memory.
func TestGiveForOne(t *testing.T) {
	a, b, _ := twoHosts()
	r, err := a.Alloc(100)
	require.NoError(t, err)
	at, other := a, b
	for range 2000 {
		p, err := at.Give(r, 1)
		require.NoError(t, err)
		var got bridge.Region
		var start, calls sync.WaitGroup
		start.Add(1)
		calls.Go(func() {
			start.Wait()
			got, _ = other.Take(p.Key, p.Ticket, p.Size)
		})
		start.Done()
		moved := p.Settle()
		calls.Wait()
		require.Equal(t, moved, got != nil)
		require.Equal(t, moved, r.Bytes() == nil)
		if moved {
			r, at, other = got, other, at
		}
	}
}

// TestGiveMany: what is away is kept mapped up to a bound, and exposed anew after a while.
func TestGiveMany(t *testing.T) {
	a, b, _ := twoHosts()
	var there []bridge.Region
	for range 2 * kept {
		r, err := a.Alloc(1)
		require.NoError(t, err)
		there = append(there, give(t, a, b, r))
	}
	require.LessOrEqual(t, len(a.givens), kept+1)
	require.LessOrEqual(t, len(a.list()), kept+1)
	for i, r := range there {
		there[i] = give(t, b, a, r)
	}
	require.Len(t, a.list(), 2*kept)
	for _, r := range there {
		give(t, a, b, r)
	}
	a.End()
	b.End()
	require.Empty(t, a.givens)
	require.Empty(t, b.givens)
}

// TestGiveAtEnd: the end of a host leaves what it gives with one of both, and nothing is touched after.
func TestGiveAtEnd(t *testing.T) {
	var moved atomic.Int64
	for i := range 300 {
		a, b, _ := twoHosts()
		r, err := a.Alloc(1)
		require.NoError(t, err)
		if i%2 == 0 {
			r = give(t, b, a, give(t, a, b, r))
		}
		p, err := a.Give(r, 1)
		require.NoError(t, err)
		var calls sync.WaitGroup
		calls.Go(a.End)
		got, err := b.Take(p.Key, p.Ticket, p.Size)
		calls.Wait()
		require.Equal(t, p.Settle(), err == nil)
		if err == nil {
			moved.Add(1)
			require.NoError(t, got.Close())
		}
		_, err = a.Give(r, 1)
		require.Error(t, err)
	}
	t.Logf("%d of 300 had moved", moved.Load())
}
