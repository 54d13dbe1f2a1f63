package region

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// mapper gives memory its index in a made-up bus, and counts what is mapped.
type mapper struct {
	next   uint64
	mapped map[uint64]uint64
	err    error
}

func newTable() (*Table, *mapper) {
	t, m := new(Table), &mapper{next: 1 << 30, mapped: make(map[uint64]uint64)}
	t.Init(m)
	return t, m
}

func (m *mapper) Map(data []byte) (uint64, error) {
	if m.err != nil {
		return 0, m.err
	}
	m.next += 1 << 20
	m.mapped[m.next] = uint64(len(data))
	return m.next, nil
}

func (m *mapper) Unmap(address, size uint64) {
	if m.mapped[address] != size {
		panic("unmapped what was not mapped")
	}
	delete(m.mapped, address)
}

// use is Use of memory that nobody gave away.
func use(t *Table, data []byte) *Region {
	r, err := t.Use(data)
	if err != nil {
		panic(err)
	}
	return r
}

// TestUseFindsWhatLiesInside compares Use with the plain question of each region.
func TestUseFindsWhatLiesInside(t *testing.T) {
	table, m := newTable()
	mem := make([]byte, 1000)
	require.Nil(t, use(table, mem[:1]), "nothing registered")
	type bound struct{ from, to int }
	var bounds []bound
	for at := 10; at+30 < len(mem); at += 40 {
		b := bound{at, at + 1 + rand.IntN(40)}
		bounds = append(bounds, b)
	}
	for _, i := range rand.Perm(len(bounds)) {
		_, err := table.Register(mem[bounds[i].from:bounds[i].to])
		require.NoError(t, err)
	}
	for range 10_000 {
		from := rand.IntN(len(mem))
		to := from + rand.IntN(min(50, len(mem)-from)+1)
		var want *bound
		for i, b := range bounds {
			if from < to && b.from <= from && to <= b.to {
				want = &bounds[i]
			}
		}
		r := use(table, mem[from:to])
		require.Equal(t, want != nil, r != nil, "[%d:%d] of %v", from, to, bounds)
		if r != nil {
			require.Equal(t, r.address+uint64(from-want.from), r.At(mem[from:to]))
			r.Done()
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if r := use(table, mem[10:11]); r != nil {
			r.Done()
		}
	}))
	table.End()
	require.Empty(t, m.mapped)
}

// TestCloseAgainstUse: either the use holds the region or the close has it.
func TestCloseAgainstUse(t *testing.T) {
	table, m := newTable()
	mem := make([]byte, 64)
	for range 2000 {
		r, err := table.Register(mem)
		require.NoError(t, err)
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				if r := use(table, mem[1:]); r != nil {
					if r.Bytes() == nil {
						t.Error("released under a use")
					}
					r.Done()
				}
			})
		}
		for r.Close() != nil {
		}
		calls.Wait()
		require.Nil(t, use(table, mem))
	}
	require.Empty(t, m.mapped)
}

// TestMapThatFails leaves no region, and gives memory of Alloc back.
func TestMapThatFails(t *testing.T) {
	table, m := newTable()
	m.err = errors.New("no window")
	_, err := table.Register(make([]byte, 10))
	require.ErrorIs(t, err, m.err)
	own := &owner{mapper: m}
	table.Init(own)
	_, err = table.Alloc(10)
	require.ErrorIs(t, err, m.err)
	require.Zero(t, own.given)
	m.err = nil
	r, err := table.Alloc(10)
	require.NoError(t, err)
	require.Equal(t, 1, own.given)
	require.NoError(t, r.Close())
	require.Zero(t, own.given)
	table.End()
	_, err = table.Alloc(10)
	require.ErrorIs(t, err, bridge.ErrClosed)
	require.Zero(t, own.given)
}

// owner is a mapper with memory of its own.
type owner struct {
	*mapper
	given int
}

func (o *owner) Alloc(size int) ([]byte, error) {
	o.given++
	return make([]byte, size), nil
}

func (o *owner) Free([]byte) { o.given-- }
