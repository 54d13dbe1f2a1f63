package mailbox

import (
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// loggedSlot is a slot that passed a mailbox: the host put it, or took it out of the ring.
type loggedSlot struct {
	Time    time.Duration // since the log began
	Mailbox int
	Taken   bool // from the device
	Slot    wire.Slot
}

// SlotLog keeps the first slots that pass the mailboxes of a device, for package spec to verify. A put
// is in it before the device can see the slot, and what is taken before the host looks at it.
type SlotLog struct {
	hello wire.Hello
	begin time.Time
	most  int

	mu    sync.Mutex
	slots []loggedSlot
}

// LogSlots begins a log of at most so many slots of a device of [Open], from now on and over resets. It
// is for tests: while it is on, each slot is copied under one lock. Nobody calls the device meanwhile.
func LogSlots(dev bridge.Device, most int) *SlotLog {
	d := dev.(*device)
	e := d.cur.Load()
	l := &SlotLog{hello: e.Hello, begin: time.Now(), most: most}
	d.slots.Store(l)
	for _, b := range e.mailboxes {
		b.log.Store(l)
	}
	return l
}

// Hello returns what device and host agreed on.
func (l *SlotLog) Hello() wire.Hello { return l.hello }

// Slots returns what the log has so far.
func (l *SlotLog) Slots() []loggedSlot {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots[:len(l.slots):len(l.slots)]
}

// add takes a slot.
func (l *SlotLog) add(b *mailbox, taken bool, header uint64, p *[7]uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.slots) < l.most {
		l.slots = append(l.slots, loggedSlot{time.Since(l.begin), b.index, taken, wire.Slot{Header: header, Payload: *p}})
	}
}
