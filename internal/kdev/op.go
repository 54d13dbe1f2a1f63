package kdev

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/region"
	"github.com/nfcomms/nfcomms/internal/stamp"
)

// op is one operation, and the place of its completion. It is used
// again, and what it holds is allocated once.
type op struct {
	index  uint32 // in the table, for ever
	use    uint32 // counts uses: a completion of an older one is none of ours
	flying bool   // the completion is pending; guarded by the table
	late   bool   // nobody reads completions any more: it must not be submitted
	id     uint64 // the module's for this use, 0 before it took it; guarded by the table

	raw    uapi.Op
	submit uapi.Submit // for one that is not submitted with others
	cancel uapi.Cancel
	got    uapi.Completion
	stamps uapi.Stamps // where raw asks for them

	done   chan struct{}                // takes one token when got is there
	record atomic.Pointer[stamp.Record] // of the call, nil if nobody measures it
	arm    *half                        // not nil: nobody waits, the half is notified
	place  *place                       // of an ARM among the senders

	region *region.Region // holds the memory that the module may use …
	pin    runtime.Pinner // … or this, where it is no region's
}

// memory gives the operation the bytes it is about. They do not move, and stay
// alive, until the op is put back.
func (o *op) memory(regions *region.Table, data []byte) {
	o.raw.Length = uint64(len(data))
	if len(data) == 0 {
		return
	}
	p := unsafe.SliceData(data)
	if o.region, _ = regions.Use(data); o.region == nil { // nothing moves
		o.pin.Pin(p)
	} else if o.region.Reached() {
		o.raw.Region, o.raw.Offset = split(o.region.At(data))
		return
	}
	o.raw.Address = uint64(uintptr(unsafe.Pointer(p)))
}

// offer returns what a NEXT found.
func (o *op) offer() bridge.Offer {
	return bridge.Offer{Indirect: o.got.Flags&uapi.Indirect != 0, Size: o.got.Length}
}

// notNow reports whether an operation that does not wait did nothing.
func (o *op) notNow() bool { return o.got.Error == 0 && o.got.Flags&uapi.NotNow != 0 }

// table holds all operations of a device.
type table struct {
	mu   sync.Mutex
	all  []*op
	free []*op
	over bool // no completion is read any more
}

// get returns an op for a new use. Its completion is passed to arm if that is not nil, else to the
// waiter.
func (t *table) get(opcode, flags uint16, channel uint32, arm *half) *op {
	t.mu.Lock()
	var o *op
	if n := len(t.free); n > 0 {
		o = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		o = &op{index: uint32(len(t.all)), done: make(chan struct{}, 1)}
		t.all = append(t.all, o)
	}
	o.use++
	o.flying, o.id = true, 0
	o.late = t.over
	o.arm, o.place = arm, nil
	t.mu.Unlock()
	o.raw = uapi.Op{
		Opcode: opcode, Flags: flags, Channel: channel,
		UserData: uint64(o.use)<<32 | uint64(o.index),
	}
	return o
}

// put takes an op back whose completion was there.
func (t *table) put(o *op) {
	o.pin.Unpin()
	o.record.Store(nil)
	if o.region != nil {
		o.region.Done()
		o.region = nil
	}
	t.mu.Lock()
	t.free = append(t.free, o)
	t.mu.Unlock()
}

// land returns the op that a completion belongs to, nil if there is none that
// waits for it.
func (t *table) land(userData uint64) *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.findLocked(userData)
	if o != nil {
		o.flying = false
	}
	return o
}

// findLocked returns the op of this user data, nil if its completion was there. Must hold mu.
func (t *table) findLocked(userData uint64) *op {
	index, use := uint32(userData), uint32(userData>>32)
	if int(index) >= len(t.all) {
		return nil
	}
	if o := t.all[index]; o.flying && o.use == use {
		return o
	}
	return nil
}

// identify notes the ids of operations that the module took. Some may have ended already.
func (t *table) identify(ops []uapi.Op, first uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range ops {
		if o := t.findLocked(ops[i].UserData); o != nil {
			o.id = first + uint64(i)
		}
	}
}

// id returns the module's number of the operation with this user data; 0, which is none's,
// if it has ended or was not submitted.
func (t *table) id(userData uint64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.findLocked(userData); o != nil {
		return o.id
	}
	return 0
}

// landAll returns every op that waits. Later ones are late.
func (t *table) landAll() []*op {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	var list []*op
	for _, o := range t.all {
		if o.flying {
			o.flying = false
			list = append(list, o)
		}
	}
	return list
}

// heldID returns the id of an ARM whose turn the module keeps; 0 if it keeps none.
func (o *op) heldID() uint64 {
	if o.got.Error != 0 || o.got.Flags&uapi.Held == 0 {
		return 0
	}
	return o.got.ID
}

// driven writes the times of the module's steps to the record of the call.
func (o *op) driven(r *stamp.Record, d abi.Direction) {
	s := &o.stamps
	r.Driven(d, o.transfers(), &stamp.Driver{
		Taken: s.TakenNS, Ready: s.ReadyNS, Put: s.PutNS, Answered: s.AnsweredNS, Completed: s.CompletedNS,
		Began: s.BeganNS, Met: s.MetNS, Done: s.DoneNS,
	})
}

// transfers reports whether the operation moves a transfer.
func (o *op) transfers() bool {
	return o.raw.Opcode == uapi.OpSendInd || o.raw.Opcode == uapi.OpReceiveInd
}

// moves reports whether it moves a message or a transfer.
func (o *op) moves() bool {
	return o.transfers() || o.raw.Opcode == uapi.OpSend || o.raw.Opcode == uapi.OpReceive
}

// finish marks that got is there.
func (o *op) finish(t *table) {
	if h := o.arm; h != nil {
		opcode, p, id := o.raw.Opcode, o.place, o.heldID()
		t.put(o)
		h.told(opcode, p, id)
		return
	}
	o.record.Load().Completed()
	o.done <- struct{}{}
}
