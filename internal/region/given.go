package region

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Giver is a Mapper whose hosts give each other memory that stays where it is.
type Giver interface {
	// Make returns at least size bytes of zeroed memory, whole pages, of a file of their own.
	Make(size int) ([]byte, error)
	// Expose lets hosts that know the key have memory of Make or Fetch, until it was called Exposures
	// times more.
	Expose(mem []byte) (key uint64, err error)
	// Fetch returns the memory of a key: what this process has mapped already, if that is the same.
	Fetch(key uint64) ([]byte, error)
	// Drop unmaps memory, for which Unmap is not called. If wipe, its pages after the first go back to the
	// system, also where other hosts map them.
	Drop(mem []byte, wipe bool)
}

const (
	// Exposures is how many pieces of memory a host exposes at once. A further one ends the first.
	Exposures = 64
	// kept is how much memory that other hosts have stays mapped, to be known when it returns.
	kept = 64
	// dropped is the word of memory that its owner has closed.
	dropped = ^uint64(0)
)

// Why a region does not move.
var (
	errMoved  = fmt.Errorf("memory that another host has: %w", bridge.ErrMoved)
	errClosed = fmt.Errorf("the region is %w", bridge.ErrClosed)
	errUses   = fmt.Errorf("a transfer or a window uses the region: %w", bridge.ErrBusy)
	errOthers = fmt.Errorf("the region is not of this device: %w", bridge.ErrInvalid)
	errNoWay  = fmt.Errorf("only memory of Alloc, of a device that shares it, is given away: %w", bridge.ErrNotSupported)
)

// given is memory that hosts give each other: the file has a page for whose it is, and then the bytes.
// Its word is even while a host has it, and odd while it is offered under that number. The host that
// makes it even has the memory: the one that takes it, or the one that takes it back.
type given struct {
	mem     []byte
	last    *Region // that it is here, or was
	offer   *Parcel // under way
	key     uint64  // under which this host exposes it, …
	epoch   uint32  // … in this epoch …
	exposed uint64  // … as its so many-th
}

// word says whose the memory is. Other processes write it: it is believed in nothing but that.
func (g *given) word() *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(g.mem)))
}

// bytes are those that are given.
func (g *given) bytes(size uint64) []byte { return g.mem[abi.PageSize:][:size:size] }

// away reports whether another host has it, as far as is known here.
func (g *given) away() bool { return g.offer == nil && (g.last == nil || g.last.mem == nil) }

// Parcel is a region under way to another host: nobody uses it until Settle.
type Parcel struct {
	Key, Ticket, Size uint64

	r           *Region
	given       *given
	fresh       bool // the bytes are a copy of those of the region
	done, moved bool // guarded by the table
}

// Give begins to give a region away, in an epoch of the device. Settle must follow.
func (t *Table) Give(of bridge.Region, epoch uint32) (*Parcel, error) {
	giver, ok := t.mapper.(Giver)
	if !ok {
		return nil, errNoWay
	}
	r, ok := of.(*Region)
	if !ok || r.table != t {
		return nil, errOthers
	}
	if err := r.lift(); err != nil {
		return nil, err
	}
	p := &Parcel{r: r, given: r.given, Size: r.size}
	err := t.pack(giver, p, epoch)
	if err != nil {
		t.mu.Lock()
		r.putBack()
		t.mu.Unlock()
		return nil, err
	}
	return p, nil
}

// lift keeps everything else from a region.
func (r *Region) lift() error {
	t := r.table
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended || r.mem == nil && !r.moved.Load():
		return errClosed
	case r.mem == nil:
		return errMoved
	case !r.ours && r.given == nil:
		return errNoWay
	case !r.users.CompareAndSwap(0, released):
		return errUses
	}
	r.moved.Store(true)
	return nil
}

// putBack ends lift. Must hold the table's mu.
func (r *Region) putBack() {
	if r.mem != nil {
		r.moved.Store(false)
		r.users.Store(0)
	}
}

// pack puts a parcel's bytes where others can have them, exposes those, and offers them.
func (t *Table) pack(giver Giver, p *Parcel, epoch uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.exposed(p.given, epoch) {
		t.mu.Unlock()
		key, err := t.prepare(giver, p)
		t.mu.Lock()
		if err == nil && p.r.mem == nil {
			err = errClosed // with the device
		}
		if err != nil {
			if p.fresh {
				giver.Drop(p.given.mem, true)
			}
			return err
		}
		if p.fresh {
			t.givens = append(t.givens, p.given)
		}
		t.exposures++
		p.given.key, p.given.epoch, p.given.exposed = key, epoch, t.exposures
		t.name(key, p.given)
	}
	p.Key, p.Ticket = p.given.key, (p.given.word().Load()+1)|1
	p.given.word().Store(p.Ticket)
	p.given.offer = p
	return nil
}

// exposed reports whether this host exposes memory already. Must hold mu.
func (t *Table) exposed(g *given, epoch uint32) bool {
	return g != nil && g.key != 0 && g.epoch == epoch && t.exposures-g.exposed < Exposures
}

// prepare asks the mapper for what a parcel needs.
func (t *Table) prepare(giver Giver, p *Parcel) (key uint64, err error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if p.given == nil {
		t.sweep()
		mem, err := giver.Make(abi.PageSize + int(p.Size))
		if err != nil {
			return 0, err
		}
		p.given, p.fresh = &given{mem: mem}, true
		copy(p.given.bytes(p.Size), p.r.mem)
	}
	return giver.Expose(p.given.mem)
}

// name notes a key of memory. Must hold mu.
func (t *Table) name(key uint64, g *given) {
	if t.byKey == nil {
		t.byKey = make(map[uint64]*given)
	}
	t.byKey[key] = g
}

// Settle ends the offer, whatever became of it, and reports whether another host has taken the region:
// else it is here, as it was.
func (p *Parcel) Settle() (moved bool) {
	t := p.r.table
	t.mu.Lock()
	defer t.mu.Unlock()
	p.settle()
	return p.moved
}

// settle is Settle, once. Must hold the table's mu.
func (p *Parcel) settle() {
	if p.done {
		return
	}
	p.done, p.moved = true, !p.given.word().CompareAndSwap(p.Ticket, p.Ticket+1)
	if p.given.offer == p { // else this process has taken it
		p.given.offer = nil
	}
	t := p.r.table
	switch {
	case !p.moved && p.fresh:
		t.drop(p.given, true)
		fallthrough
	case !p.moved:
		p.r.putBack()
	case p.fresh: // the bytes that were copied
		list := slices.Clone(t.list())
		i := slices.Index(list, p.r)
		t.store(slices.Delete(list, i, i+1))
		p.r.release()
	default:
		p.r.pin.Unpin()
		p.r.mem = nil
	}
}

// sweep drops memory that its owner has closed, and of the rest that is away the oldest.
func (t *Table) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	away := 0
	for _, g := range slices.Backward(slices.Clone(t.givens)) {
		if !g.away() {
			continue
		}
		if away++; away > kept || g.word().Load() == dropped {
			t.drop(g, false)
		}
	}
}

// drop forgets memory, of which this host is the owner, or not. Must hold mu.
func (t *Table) drop(g *given, owner bool) {
	if owner {
		g.word().Store(dropped)
	}
	t.givens = slices.DeleteFunc(t.givens, func(o *given) bool { return o == g })
	for key, of := range t.byKey {
		if of == g {
			delete(t.byKey, key)
		}
	}
	if g.last != nil && g.last.mem == nil {
		if list := slices.Clone(t.list()); slices.Contains(list, g.last) {
			i := slices.Index(list, g.last)
			t.store(slices.Delete(list, i, i+1))
		}
	}
	t.mapper.(Giver).Drop(g.mem, owner)
}
