package region

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

var errGone = fmt.Errorf("the sender took the region back: %w", bridge.ErrAborted)

// Take makes a region of what another host offers. ErrAborted if it is not to be had any more.
func (t *Table) Take(key, ticket, size uint64) (bridge.Region, error) {
	giver, ok := t.mapper.(Giver)
	if !ok {
		return nil, errNoWay
	}
	g, err := t.known(giver, key)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return nil, errClosed
	}
	if !slices.Contains(t.givens, g) || size == 0 || size > uint64(len(g.mem)-abi.PageSize) || ticket%2 == 0 {
		return nil, errGone
	}
	if g.last != nil && !g.last.moved.Load() || g.word().Load() != ticket {
		return nil, errGone // it is here, or was taken back
	}
	mem := g.bytes(size)
	address, err := t.mapper.Map(mem)
	if err != nil {
		return nil, err
	}
	r := &Region{table: t, mem: mem, first: uintptr(unsafe.Pointer(unsafe.SliceData(mem))), size: size, address: address, given: g}
	list := slices.Clone(t.list())
	if i := before(list, r.first); i < len(list) && list[i].first == r.first {
		list[i] = r
	} else if len(list) < Most {
		list = slices.Insert(list, i, r)
	} else {
		return nil, fmt.Errorf("more than %d regions: %w", Most, bridge.ErrNoMemory)
	}
	if !g.word().CompareAndSwap(ticket, ticket+1) {
		return nil, errGone
	}
	g.last = r
	t.store(list)
	if g.offer != nil { // this process offered it
		g.offer.settle()
	}
	return r, nil
}

// known returns the memory of a key, which another host exposes unless it is known here.
func (t *Table) known(giver Giver, key uint64) (*given, error) {
	look := func() *given {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.byKey[key]
	}
	if g := look(); g != nil {
		return g, nil
	}
	t.asking.Lock()
	defer t.asking.Unlock()
	if g := look(); g != nil {
		return g, nil
	}
	t.sweep()
	mem, err := giver.Fetch(key)
	switch {
	case errors.Is(err, bridge.ErrNoMemory) || errors.Is(err, bridge.ErrClosed) || errors.Is(err, bridge.ErrDeviceLost):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.givens, func(g *given) bool { return unsafe.SliceData(g.mem) == unsafe.SliceData(mem) })
	if i < 0 {
		i = len(t.givens)
		t.givens = append(t.givens, &given{mem: mem})
	}
	t.name(key, t.givens[i])
	return t.givens[i], nil
}
