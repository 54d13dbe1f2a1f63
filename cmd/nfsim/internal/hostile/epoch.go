//go:build cgo

package hostile

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/scripted"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// epoch is one epoch of the device. Its hooks are called with the script's lock
// held.
type epoch struct {
	dev    *Device
	bus    *firmware.Bus
	script atomic.Pointer[scripted.Device]
	stop   chan struct{}
	extra  sync.WaitGroup // what runs beside the script

	flips sync.Once
	hung  atomic.Bool
	said  []wire.Slot // the last messages to the host
	late  []echo
}

// echo is a DMA write to be done once more, when the host has said enough to
// have ended the transfer.
type echo struct {
	address uint64
	data    []byte
	after   int // messages of the host
}

// Ring wakes the device.
func (l *epoch) Ring(island int) { l.script.Load().Ring(island) }

// Fence stops DMA for the rest of the epoch.
func (l *epoch) Fence() { l.script.Load().Fence() }

// Close ends the epoch. No process of a script computes.
func (l *epoch) Close() *firmware.Computing {
	close(l.stop)
	_ = l.script.Load().Close() // it is closed once
	l.extra.Wait()
	return nil
}

// take sees a message of the host; a device that hangs, or loses it, does not.
func (l *epoch) take(m *wire.Slot) bool {
	if l.hung.Load() {
		return false
	}
	kept := l.late[:0]
	for _, e := range l.late {
		if e.after--; e.after > 0 {
			kept = append(kept, e)
			continue
		}
		l.bus.Write(e.address, e.data) // whether it still may is the question
	}
	l.late = kept
	return len(l.dev.strike(onTake, m)) == 0
}

// head returns what the device says that it took in place of what it did.
func (l *epoch) head(head uint64) uint64 {
	for _, f := range l.dev.strike(onHead, nil) {
		l.dev.chance(func(r *rand.Rand) {
			if f.name == "ahead" {
				head += 1 << r.IntN(64)
			} else {
				head -= 1 + r.Uint64N(head)
			}
		})
	}
	return head
}

// rewrite changes a message whose slot is out already.
func (l *epoch) rewrite(m *wire.Slot) bool {
	if len(l.dev.strike(onPublished, m)) == 0 {
		return false
	}
	l.dev.chance(func(r *rand.Rand) {
		m.Payload[r.IntN(len(m.Payload))] ^= 1 << r.IntN(64)
		if r.IntN(2) == 0 {
			m.Header ^= 1 << (8 + r.IntN(56)) // above the phase
		}
	})
	return true
}

// give returns what is published in place of a message.
func (l *epoch) give(m wire.Slot) []wire.Slot {
	out, altered := []wire.Slot{m}, false
	for _, f := range l.dev.strike(onMessage, &m) {
		if f.wrong == "" {
			l.misbehave(f.name)
		} else if !altered {
			altered = true
			l.dev.chance(func(r *rand.Rand) {
				rows := f.rows(&m)
				out = rows[r.IntN(len(rows))].Alter(r, m, l.said)
			})
		}
	}
	if l.said = append(l.said, m); len(l.said) > kept {
		l.said = l.said[1:]
	}
	if l.hung.Load() {
		return nil
	}
	return out
}

// misbehave does what is no change of a message.
func (l *epoch) misbehave(name string) {
	switch name {
	case "die":
		l.dev.effects.Die()
	case "gone":
		l.hang()
		l.dev.effects.Vanish()
		area := l.bus.Area()[:l.word(areaSize)]
		for i := range area {
			area[i] = 0xff
		}
	case "fake-removal":
		l.dev.effects.FakeRemoval()
	case "hang":
		l.hang()
	case "mute":
		l.beside(func() { l.script.Load().StopBeat() })
	case "flip":
		l.flips.Do(func() { l.beside(l.flip) }) // a second would read what the first changed
	}
}

// hang makes the device neither take nor give nor beat.
func (l *epoch) hang() {
	l.hung.Store(true)
	l.beside(func() { l.script.Load().Kill() }) // takes the lock that is held now
}

// beside runs f until the epoch ends, at the latest.
func (l *epoch) beside(f func()) {
	select {
	case <-l.stop:
	default:
		l.extra.Go(f)
	}
}

// host is what the script reaches of its host.
type host struct{ *epoch }

// Post writes in the host's memory.
func (h *host) Post(address uint64, p []byte) bool { return h.bus.Write(address, p) == abi.OK }

// Peek reads there.
func (h *host) Peek(p []byte, address uint64) bool { return h.bus.Read(p, address) == abi.OK }

// Ring interrupts.
func (h *host) Ring(island int) {
	times := 1
	for _, f := range h.dev.strike(onInterrupt, nil) {
		switch f.name {
		case "irq-drop":
			times = 0
		case "irq-dup":
			times = 2
		case "irq-storm":
			h.beside(h.storm)
		}
	}
	if times > 0 {
		h.bus.RingHost(island)
	}
	if times > 1 {
		h.bus.Fire(h.bus.VectorOf(island))
	}
}

// storm fires every vector again and again.
func (h *host) storm() {
	const rounds, pause = 5000, 20 * time.Microsecond
	for range rounds {
		select {
		case <-h.stop:
			return
		case <-time.After(pause):
		}
		for v := range h.bus.Vectors() {
			h.bus.Fire(v)
		}
	}
}

// Move is one DMA access.
func (h *host) Move(mem []byte, address uint64, d abi.Direction) bool {
	ok := false
	if d == abi.H2D {
		ok = h.bus.Read(mem, address) == abi.OK
	} else {
		ok = h.bus.Write(address, mem) == abi.OK
	}
	for _, f := range h.dev.strike(onDMA, nil) {
		if f.event == onDMA && f.control {
			h.misbehave(f.name)
		} else {
			h.reach(f.name, mem, address, d)
		}
	}
	return ok
}

// reach accesses memory that is not the device's to access. The IOMMU and the test decide the
// outcome.
func (h *host) reach(name string, mem []byte, address uint64, d abi.Direction) {
	const span = 64
	canary := make([]byte, span)
	for i := range canary {
		canary[i] = 0xa5
	}
	switch name {
	case "overreach":
		for _, at := range []uint64{address - span, address + uint64(len(mem))} {
			if d == abi.H2D {
				h.bus.Read(make([]byte, span), at)
			} else {
				h.bus.Write(at, canary)
			}
		}
	case "wild":
		h.dev.chance(func(r *rand.Rand) {
			h.bus.Write(address&^(abi.PageSize-1)+abi.PageSize*(1+r.Uint64N(64)), canary)
		})
	case "scribble":
		if d == abi.H2D {
			h.bus.Write(address, canary[:min(span, len(mem))])
		}
	case "late":
		if d == abi.D2H {
			h.late = append(h.late, echo{address, canary[:min(span, len(mem))], 8})
		}
	case "stale":
		if d == abi.D2H {
			h.dev.remember(address, canary[:min(span, len(mem))])
		}
	}
}
