package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// epoch is the time of a device from boot to reset.
type epoch struct {
	dev *device
	memory
	low       uint8 // low bits of the number, in every message
	mailboxes []*mailbox
	runs      []runs // by island
	table     table
	control   control
	watch     watch
	full      int32         // polls of a full spin
	stall     time.Duration // that a transfer may stand still
	offered   atomic.Int64  // h2d offers whose calls sleep until the target takes them

	down   atomic.Pointer[downError]
	fenced chan struct{} // closed when DMA is quiet and every channel knows
}

// downError is why an epoch ended.
type downError struct{ err error }

// newEpoch shakes hands with the device and opens the control channel.
func newEpoch(ctx context.Context, d *device) (*epoch, error) {
	base, size := d.port.Area()
	m, err := handshake(ctx, base, size, d.without())
	if err != nil {
		return nil, err
	}
	beat := time.Duration(m.Hello.BeatMS) * time.Millisecond
	e := &epoch{dev: d, memory: m, low: uint8(m.Epoch), full: calibrate(), stall: stallLimit(d, beat), fenced: make(chan struct{})}
	e.mailboxes, e.runs = make([]*mailbox, m.Hello.Mailboxes), make([]runs, m.Hello.Islands)
	for i := range e.mailboxes {
		e.mailboxes[i] = newMailbox(e, i)
	}
	e.table.init(int(m.Hello.Channels))
	e.watch.init(e, beat)
	c := e.newChannel(abi.TargetControl)
	e.table.add(c)
	e.control.ch = c
	return e, nil
}

// without returns the capabilities that are of no use here. A host that copies nothing need not
// learn of each list.
func (d *device) without() uint32 {
	if d.stager == nil {
		return wire.CapRounds
	}
	return 0
}

// mailboxOf returns the mailbox of a channel.
func (e *epoch) mailboxOf(id uint32) *mailbox { return e.mailboxes[e.Hello.Mailbox(id)] }

// err returns why the epoch ended, nil before that.
func (e *epoch) err() error {
	if d := e.down.Load(); d != nil {
		return d.err
	}
	return nil
}

// fail ends the epoch from inside a call, a drain or a timer. It does not
// wait, so it may be called under any lock.
func (e *epoch) fail(err error) {
	if e.err() == nil && errors.Is(err, bridge.ErrDeviceLost) {
		err = e.dev.blame(err)
	}
	if e.down.CompareAndSwap(nil, &downError{err}) {
		e.dev.failed(err)
		go e.fence()
	}
}

// end ends the epoch, or renames the reason it ended for, and waits until no
// call works in it any more. If ctx ends first it can be called again.
func (e *epoch) end(ctx context.Context, err error) error {
	if e.down.CompareAndSwap(nil, &downError{err}) {
		e.fence()
	} else {
		e.down.Store(&downError{err})
	}
	<-e.fenced
	for _, c := range e.table.list() {
		if err := c.leave(ctx); err != nil {
			return fmt.Errorf("channel %d: wait for its calls: %w", c.id, err)
		}
	}
	return nil
}

// fence stops DMA and only then ends the calls: what holds a buffer gives it
// back when its call ends.
func (e *epoch) fence() {
	e.dev.port.Fence()
	e.watch.stop()
	for _, b := range e.mailboxes {
		b.kill()
	}
	for _, c := range e.table.list() {
		c.send.shutFor(shutDown)
		c.recv.shutFor(shutDown)
	}
	close(e.fenced)
}

// gone waits for the close of a channel that the device agreed to. The device may have given its
// target to a new process already, before the closing call has noticed. False if the channel is not
// on its way out.
func (e *epoch) gone(id uint32) bool {
	e.mailboxOf(id).drain()
	c := e.table.at(id)
	if c == nil {
		return true
	}
	if eventOf(c.recv.word.Load()) != proto.EventOver {
		return false
	}
	e.settle(id)
	return true
}

// settle waits for the close that is under way of a channel whose target the device has named for
// a new one. It agreed to that close, but over links a message of one mailbox may arrive before
// an earlier one of another.
func (e *epoch) settle(id uint32) {
	c := e.table.at(id)
	if c == nil || !c.last.Load() {
		return
	}
	c.closing.Lock() // until close has returned: it clears the park word
	defer c.closing.Unlock()
}

// drain takes what is there in every mailbox. It returns how many messages it
// took; dry is false if a mailbox holds more.
func (e *epoch) drain() (taken uint64, dry bool) {
	dry = true
	for _, b := range e.mailboxes {
		n, d := b.drain()
		taken, dry = taken+n, dry && d
	}
	return taken, dry
}

// table finds a channel by its id: two levels, so that an idle device with
// many ids costs little.
type table struct {
	mu    sync.Mutex
	pages []atomic.Pointer[page]
	open  int
}

const pageChannels = 1 << 12

type page [pageChannels]atomic.Pointer[channel]

func (t *table) init(channels int) {
	t.pages = make([]atomic.Pointer[page], (channels+pageChannels-1)/pageChannels)
}

// at returns the channel, nil if it is not open here. id must be below the
// device's number of channels.
func (t *table) at(id uint32) *channel {
	p := t.pages[id/pageChannels].Load()
	if p == nil {
		return nil
	}
	return p[id%pageChannels].Load()
}

// from returns the first open channel whose id is not below at, and the id after
// it; nil if there is none.
func (t *table) from(at int) (c *channel, next int) {
	for at < len(t.pages)*pageChannels {
		p := t.pages[at/pageChannels].Load()
		if p == nil {
			at = (at/pageChannels + 1) * pageChannels
			continue
		}
		c = p[at%pageChannels].Load()
		if at++; c != nil {
			return c, at
		}
	}
	return nil, at
}

// add enters a channel; false if its id is in use, or the epoch has ended.
func (t *table) add(c *channel) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := &t.pages[c.id/pageChannels]
	p := slot.Load()
	if p == nil {
		p = new(page)
		slot.Store(p)
	}
	if !p[c.id%pageChannels].CompareAndSwap(nil, c) {
		return false
	}
	t.open++
	if c.ep.down.Load() != nil { // the fence may have passed here already
		c.send.shutFor(shutDown)
		c.recv.shutFor(shutDown)
	}
	return true
}

// remove takes a channel out; false if it was out already.
func (t *table) remove(c *channel) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.pages[c.id/pageChannels].Load()[c.id%pageChannels].CompareAndSwap(c, nil) {
		return false
	}
	t.open--
	return true
}

// list returns the open channels. Its caller may wait for one: no lock is held.
func (t *table) list() []*channel {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*channel, 0, t.open)
	for i := range t.pages {
		p := t.pages[i].Load()
		if p == nil {
			continue
		}
		for j := range p {
			if c := p[j].Load(); c != nil {
				list = append(list, c)
			}
		}
	}
	return list
}
