package mailbox

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

const (
	spinTime         = 2 * time.Microsecond   // a caller polls this long before it parks
	cancelTimeout    = 100 * time.Millisecond // for the device to answer WITHDRAW, ABORT and CLOSE
	cancelStep       = cancelTimeout / 4      // between two looks after that
	cancelBeats      = 2                      // … and this many heartbeats of its own
	crowdTime        = 10 * time.Second       // for a device that answers, but others first
	heartbeatTimeout = time.Second            // without a heartbeat, at least: the device is lost
	wakeSpins        = 32                     // spinTimes that an island needs to wake up
	shareSpins       = 8                      // spinTimes in which answers come that come soon
	hotTime          = time.Millisecond       // between two rings: the channel is busy
	lateTime         = 200 * time.Microsecond // a sleep that was too long to spin instead
)

// spin decides how long a half polls before it parks. Parking costs far more
// than a short spin, so there always is one. While answers come soon there are
// several, and between them the island may have this processor: on a busy
// machine it is the one it waits for. A call that had to wake the island
// shortly after another did so spins until the island is up: both sides asleep
// in turn, each too late for the other, would stay so for ever.
type spin struct {
	full int32 // polls in spinTime; 0 where the device cannot run meanwhile
	rang time.Time
	hot  bool // the call rang the island, and not for the first time of late
	late bool // the last answer came late
}

// rounds returns how many spins to make before parking.
func (s *spin) rounds() int {
	switch {
	case s.hot:
		s.hot = false
		return wakeSpins
	case s.late:
		return 1
	default:
		return shareSpins
	}
}

// ring rings the island for the half. Must hold queue.
func (h *half) ring() {
	h.mailbox.ring()
	now := time.Now()
	h.spin.hot = now.Sub(h.spin.rang) < hotTime
	h.spin.rang = now
}

// calibrate returns how many polls of a cache line fit in spinTime, zero where
// the device cannot run while the host spins.
func calibrate() int32 {
	if runtime.NumCPU() == 1 || runtime.GOMAXPROCS(0) == 1 {
		return 0
	}
	const polls = 1 << 12
	var word uint64
	best := time.Hour
	for range 8 {
		start := time.Now()
		for range polls {
			if atomic.LoadUint64(&word) != 0 {
				break
			}
		}
		best = min(best, time.Since(start))
	}
	return int32(max(64, polls*spinTime/max(best, 1)))
}

// spinFor polls the mailbox, for everybody, until the half has one of the want
// flags; false when it is time to park. Must hold queue.
func (h *half) spinFor(want uint64) bool {
	if h.spinOnce(want) {
		return true
	}
	for round := h.spin.rounds(); round > 1 && h.shut.Load() == 0; round-- {
		h.mailbox.ep.dev.port.Yield()
		if h.spinOnce(want) {
			return true
		}
	}
	return false
}

// spinOnce polls for spinTime. Must hold queue.
func (h *half) spinOnce(want uint64) bool {
	n := h.spin.full
	for n > 0 {
		if h.mailbox.rx.TryLock() {
			n = h.spinLocked(want, n)
			h.mailbox.rx.Unlock()
		}
		if h.word.Load()&want != 0 {
			return true
		}
		if h.shut.Load() != 0 {
			return false
		}
		n--
	}
	return false
}

// spinLocked polls at most n times and returns what is left of n. Must hold rx.
func (h *half) spinLocked(want uint64, n int32) int32 {
	var s abi.Slot
	b := h.mailbox
	for ; n > 0; n-- {
		if b.takeLocked(&s) {
			b.dispatchLocked(&s)
			if h.word.Load()&want != 0 {
				return n
			}
		} else if n&63 == 0 && (h.word.Load()&want != 0 || h.shut.Load() != 0) {
			return n
		}
	}
	return 0
}

// await sleeps until the half has one of the want flags or is shut for one of
// the stop reasons; true if done or timer fired first. Must hold queue.
func (h *half) await(done <-chan struct{}, timer <-chan time.Time, want uint64, stop uint32) bool {
	for h.word.Load()&want == 0 && h.shut.Load()&stop == 0 {
		if h.sleep(done, timer, want, stop) {
			return h.word.Load()&want == 0
		}
	}
	return false
}

// sleep parks the caller once. It says so in the park word, looks at the ring
// once more and only then blocks: whatever the device publishes later rings
// the doorbell. True if done or timer fired.
func (h *half) sleep(done <-chan struct{}, timer <-chan time.Time, want uint64, stop uint32) (ended bool) {
	if h.wake == nil {
		h.wake = make(chan struct{}, 1)
	}
	h.park()
	h.word.Or(parkedFlag)
	_, dry := h.mailbox.drain()
	if h.word.Load()&want == 0 && h.shut.Load()&stop == 0 {
		ended = h.block(done, timer, dry)
	}
	h.word.And(^uint64(parkedFlag))
	h.unpark()
	return ended
}

// block waits for the token. While the ring is not dry it only gives way.
func (h *half) block(done <-chan struct{}, timer <-chan time.Time, dry bool) (ended bool) {
	if !dry {
		runtime.Gosched()
		select {
		case <-done:
			return true
		case <-timer:
			return true
		default:
			return false
		}
	}
	h.addWaiting(1)
	h.parked.Add(1)
	h.mailbox.ep.watch.wakeUp()
	start := time.Now()
	if done == nil && timer == nil {
		<-h.wake
	} else {
		select {
		case <-h.wake:
		case <-done:
			ended = true
		case <-timer:
			ended = true
		}
	}
	h.spin.late = time.Since(start) > lateTime
	h.addWaiting(-1)
	return ended
}

// park sets the half's bit in the park word.
func (h *half) park() {
	h.mu.Lock()
	h.parkLocked()
	h.mu.Unlock()
}

// parkLocked is park. Must hold mu.
func (h *half) parkLocked() {
	if h.sleepers++; h.sleepers == 1 && h.shut.Load()&shutDown == 0 {
		atomic.OrUint32(h.ch.park, 1<<h.dir) // a full fence; SYNC: channel park
	}
}

// unpark clears the half's bit in the park word after the last sleeper.
func (h *half) unpark() {
	h.mu.Lock()
	h.unparkLocked()
	h.mu.Unlock()
}

// unparkLocked is unpark. Must hold mu.
func (h *half) unparkLocked() {
	if h.sleepers--; h.sleepers == 0 && h.shut.Load()&shutDown == 0 {
		atomic.AndUint32(h.ch.park, ^uint32(1<<h.dir))
	}
}

// escalate waits for the device to answer what ends a transaction. A device that
// beats but does not answer is lost, and so is one that stops beating; one
// that answers others first, because thousands ask at once, gets more time.
// Time is counted in steps that this goroutine saw pass, so that a machine
// that stood still is not taken for a dead device, and what the ring holds is
// read before each step counts: on a machine that is busy with thousands of
// calls the answer may be there, and nobody drained it yet. False if it is
// lost; DMA is quiet then. Must hold queue.
func (h *half) escalate(want uint64) bool {
	ep := h.mailbox.ep
	start, beat, taken := time.Now(), ep.watch.beat(), h.mailbox.taken()
	timer := time.NewTimer(cancelTimeout)
	defer timer.Stop()
	for step := cancelTimeout; h.await(nil, timer.C, want, shutDown); step += cancelStep {
		h.mailbox.drain()
		if h.word.Load()&want != 0 {
			break
		}
		if n := h.mailbox.taken(); n != taken && time.Since(start) < crowdTime {
			beat, taken, step = ep.watch.beat(), n, 0
		}
		if step >= heartbeatTimeout || ep.watch.beat()-beat >= cancelBeats {
			ep.fail(fmt.Errorf("%w: channel %d: no answer in %v", bridge.ErrDeviceLost, h.ch.id, time.Since(start)))
			h.await(nil, nil, want, shutDown)
			break
		}
		timer.Reset(cancelStep)
	}
	return h.word.Load()&want != 0
}

// put publishes a message of the half; while the ring is full it waits. It
// returns why it gave up: nothing was put then. Must hold queue.
func (h *half) put(ctx context.Context, hd abi.Header, p *[7]uint64, limit uint64, stop uint32) error {
	switch h.mailbox.put(hd, p, limit) {
	case putDone:
		return nil
	case putRing:
		h.ring()
		return nil
	}
	return h.waitForRoom(ctx, hd, p, limit, stop)
}

// waitForRoom is put for a full ring. It drains d2h meanwhile, so that two full
// rings cannot wait for each other.
func (h *half) waitForRoom(ctx context.Context, hd abi.Header, p *[7]uint64, limit uint64, stop uint32) error {
	h.mailbox.ep.dev.full.Add(1)
	h.addWaiting(1)
	defer h.addWaiting(-1)
	h.mailbox.ep.watch.wakeUp()
	bound := h.mailbox.ep.stall
	if limit == h.mailbox.urgentRoom() {
		bound = heartbeatTimeout
	}
	var wait roomWait
	for round := 0; ; round++ {
		switch h.mailbox.put(hd, p, limit) {
		case putDone:
			return nil
		case putRing:
			h.ring()
			return nil
		case putDead:
			return h.mailbox.ep.err()
		}
		h.mailbox.poll()
		if err := h.endsWait(ctx, stop); err != nil {
			return err
		}
		if wait.stuck(h.mailbox, bound) {
			return h.mailbox.lost(bound)
		}
		pause(round)
	}
}

// endsWait returns why a call should not wait for room any more.
func (h *half) endsWait(ctx context.Context, stop uint32) error {
	if h.shut.Load()&stop != 0 {
		return h.err()
	}
	if ctx.Err() != nil {
		return &bridge.WithdrawnError{Cause: ctx.Err()}
	}
	return nil
}

// record says a completion record to the device: ACK or ERROR of an offer.
func (h *half) record(t abi.Type, a *abi.Ack) error {
	var s abi.Slot
	*s.Ack() = *a
	hd := h.header(t, abi.PayloadSize, a.Transaction)
	return h.put(background, hd, &s.Payload, h.mailbox.urgentRoom(), shutDown)
}

// say names a transaction to the device: FIN, WITHDRAW, WITHDRAWN, ABORT, OFFER.
func (h *half) say(t abi.Type, id uint64) error {
	s := h.note(id)
	return h.put(background, h.header(t, abi.PayloadSize, id), &s.Payload, h.mailbox.urgentRoom(), shutDown)
}

// note returns a slot with the payload of say.
func (h *half) note(id uint64) (s abi.Slot) {
	*s.Note() = abi.Note{Transaction: id, Direction: uint32(h.dir)}
	return s
}
