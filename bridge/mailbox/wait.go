package mailbox

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/wire"
)

const (
	spinTime         = 2 * time.Microsecond   // a caller polls this long before it parks
	cancelTimeout    = 100 * time.Millisecond // for the device to answer WITHDRAW, ABORT and CLOSE
	cancelStep       = cancelTimeout / 4      // between two looks after that
	cancelHeartbeats = 2                      // … and this many heartbeats of its own
	crowdTime        = 10 * time.Second       // for a device that answers, but others first
	heartbeatTimeout = time.Second            // without a heartbeat, at least: the device is lost
	wakeSpins        = 32                     // spinTimes that an island needs to wake up
	shareSpins       = 8                      // spinTimes in which most early answers arrive
	hotTime          = time.Millisecond       // between two rings: the channel is busy
	lateTime         = 200 * time.Microsecond // a sleep that was too long to spin instead
)

// spin decides how long a half polls before it parks. Parking costs far more than a short spin, so
// there always is one. While answers arrive soon there are several, and between them the island may
// have this processor: on a busy machine it is the one it waits for. A call that had to wake the
// island shortly after another did so spins until the island is up. Otherwise both sides would
// sleep in turn, each too late for the other, for ever.
type spin struct {
	full int32 // polls in spinTime; 0 where the device cannot run meanwhile
	rang time.Time
	hot  bool // the call rang the island, and not for the first time of late
	late bool // the last answer was late

	answers uint32 // of the island's thread, not yet counted for the island
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

// parker is how calls wait in a half: they poll for a short time, then they sleep.
type parker struct {
	machine
	shut     atomic.Uint32 // why the half cannot be used any more
	mailbox  *mailbox
	channel  uint32        // its id
	parkWord *uint32       // the channel's park word, in the area
	answer   time.Duration // that the device may take, at least
	spin     spin          // owned by the queue's holder

	mu       sync.Mutex // guards sleepers and the park word's bit
	sleepers int        // calls and waiters that need a doorbell
	parked   atomic.Uint64
	waiting  atomic.Int32 // calls that wait now
	asleep   atomic.Int64 // the [meter.Instant] at which the caller fell asleep; zero while none sleeps
}

// ring has a sleeping island serve what the half put: this call runs it, or rings
// its thread. Must hold queue, and no lock.
func (p *parker) ring() {
	b := p.mailbox
	if b.runs.alone.Load() {
		p.record.Load().Sent()
		p.runIsland()
		return
	}
	b.ring()
	now := time.Now()
	p.spin.hot = now.Sub(p.spin.rang) < hotTime
	p.spin.rang = now
}

// calibrate returns how many polls of an empty mailbox fit in spinTime, zero where
// the device cannot run while the host spins.
func calibrate() int32 {
	if runtime.NumCPU() == 1 || runtime.GOMAXPROCS(0) == 1 {
		return 0
	}
	const polls = 1 << 10
	var s wire.Slot
	b := &mailbox{d2h: make([]wire.Slot, 1)}
	b.aimLocked()
	best := time.Hour
	for range 8 {
		start := time.Now()
		for n := polls; n > 0; n-- {
			if b.takeLocked(&s) || n < 0 {
				break
			}
		}
		best = min(best, time.Since(start))
	}
	return int32(max(64, polls*spinTime/max(best, 1)))
}

// spinFor polls the mailbox, for everybody, until the half has one of the want
// flags; false when it is time to park. Must hold queue.
func (p *parker) spinFor(want uint64) bool {
	b := p.mailbox
	if b.runs.alone.Load() && p.runIsland() && p.pollFor(want, 1) {
		return true
	}
	if p.spinOnce(want) {
		p.noteAnswer()
		return true
	}
	for round := p.spin.rounds(); round > 1 && p.shut.Load() == 0; round-- {
		if b.run() {
			if !p.pollFor(want, 1) {
				return false // the target is not ready: nobody was late
			}
			b.runs.missed()
			return true
		}
		b.ep.dev.port.Yield()
		if p.spinOnce(want) {
			return true
		}
	}
	return false
}

// runIsland runs the island in place of its thread, which may have another chance.
// False if somebody else was at it. Must hold queue, and no lock.
func (p *parker) runIsland() bool {
	b := p.mailbox
	if b.runs.chance() {
		b.ring()
	}
	return b.run()
}

// noteAnswer counts an answer that arrived while the call polled. Must hold queue.
func (p *parker) noteAnswer() {
	b := p.mailbox
	if b.runner == nil || b.runs.alone.Load() {
		return
	}
	if p.spin.answers++; p.spin.answers == flushAt {
		p.spin.answers = 0
		b.runs.answered()
	}
}

// spinOnce polls for spinTime. Must hold queue.
func (p *parker) spinOnce(want uint64) bool {
	n := p.spin.full
	for n > 0 {
		if p.mailbox.rx.TryLock() {
			n = p.spinLocked(want, n)
			p.mailbox.rx.Unlock()
		}
		if p.word.Load()&want != 0 {
			return true
		}
		if p.shut.Load() != 0 {
			return false
		}
		n--
	}
	return false
}

// spinLocked polls at most n times and returns what is left of n. Must hold rx.
func (p *parker) spinLocked(want uint64, n int32) int32 {
	var s wire.Slot
	b := p.mailbox
	for ; n > 0; n-- {
		if b.takeLocked(&s) {
			b.dispatchLocked(&s)
			if p.word.Load()&want != 0 {
				return n
			}
		} else if n&63 == 0 && (p.word.Load()&want != 0 || p.shut.Load() != 0) {
			return n
		}
	}
	return 0
}

// await sleeps until the half has one of the want flags or is shut for one of
// the stop reasons; true if done or timer fired first. Must hold queue.
func (p *parker) await(done <-chan struct{}, timer <-chan time.Time, want uint64, stop uint32) bool {
	for p.word.Load()&want == 0 && p.shut.Load()&stop == 0 {
		if p.sleep(done, timer, want, stop) {
			return p.word.Load()&want == 0
		}
	}
	return false
}

// sleep parks the caller once. It sets the park word, drains the ring
// once more and only then blocks: whatever the device publishes later rings
// the doorbell. True if done or timer fired.
func (p *parker) sleep(done <-chan struct{}, timer <-chan time.Time, want uint64, stop uint32) (ended bool) {
	if p.wake == nil {
		p.wake = make(chan struct{}, 1)
	}
	p.park()
	p.word.Or(parkedFlag)
	_, dry := p.mailbox.drain()
	if p.word.Load()&want == 0 && p.shut.Load()&stop == 0 {
		ended = p.block(done, timer, dry)
	}
	p.word.And(^uint64(parkedFlag))
	p.unpark()
	return ended
}

// block waits for the token. While the ring is not dry it only gives way.
func (p *parker) block(done <-chan struct{}, timer <-chan time.Time, dry bool) (ended bool) {
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
	p.addWaiting(1)
	p.parked.Add(1)
	p.mailbox.ep.watch.wakeUp()
	start := meter.Now()
	p.asleep.Store(int64(start))
	if done == nil && timer == nil {
		<-p.wake
	} else {
		select {
		case <-p.wake:
		case <-done:
			ended = true
		case <-timer:
			ended = true
		}
	}
	p.asleep.Store(0)
	p.spin.late = start.Elapsed() > lateTime
	p.addWaiting(-1)
	return ended
}

// park sets the half's bit in the park word.
func (p *parker) park() {
	p.mu.Lock()
	p.parkLocked()
	p.mu.Unlock()
}

// parkLocked is park. Must hold mu.
func (p *parker) parkLocked() {
	if p.sleepers++; p.sleepers == 1 && p.shut.Load()&shutDown == 0 {
		atomic.OrUint32(p.parkWord, 1<<p.dir) // a full fence; SYNC: channel park
	}
}

// unpark clears the half's bit in the park word after the last sleeper.
func (p *parker) unpark() {
	p.mu.Lock()
	p.unparkLocked()
	p.mu.Unlock()
}

// unparkLocked is unpark. Must hold mu.
func (p *parker) unparkLocked() {
	if p.sleepers--; p.sleepers == 0 && p.shut.Load()&shutDown == 0 {
		atomic.AndUint32(p.parkWord, ^uint32(1<<p.dir))
	}
}

// escalate waits for the device to answer what ends a transaction. A device that beats but does not
// answer is lost. One that does not beat either may wait for a processor: how long it may is the
// watch's to know. So may one of its islands, which did not take yet what was asked: it has
// heartbeatTimeout for that, and then as long to answer as any. One that answers others first,
// because thousands ask at once, gets more time. Time is counted in steps that this goroutine saw
// pass, so that a machine that stood still is not taken for a dead device. The ring is read before
// each step counts: on a machine with thousands of calls the answer may be there, not yet drained.
// False if it is lost; DMA is quiet then. Must hold queue.
func (p *parker) escalate(want uint64) bool {
	ep := p.mailbox.ep
	may := max(cancelTimeout, ep.dev.answer, p.answer)
	start, heartbeats, taken := time.Now(), ep.watch.count(), p.mailbox.taken()
	asked := p.mailbox.placed()
	timer := time.NewTimer(cancelTimeout)
	defer timer.Stop()
	var untaken time.Duration // how long the island had not taken it
	for pause, step := cancelTimeout, cancelTimeout; p.await(nil, timer.C, want, shutDown); step += pause {
		seen := ep.watch.count() // first: what the device put before a beat is drained then
		p.mailbox.drain()
		if p.word.Load()&want != 0 {
			break
		}
		if n := p.mailbox.taken(); n != taken && time.Since(start) < crowdTime {
			heartbeats, taken, step, untaken = ep.watch.count(), n, 0, 0
		} else if untaken < heartbeatTimeout && !p.mailbox.looked(asked) {
			heartbeats, untaken, step = seen, untaken+pause, -cancelStep // it may take it late in the next pause
		} else if step >= may && seen-heartbeats >= cancelHeartbeats {
			ep.fail(fmt.Errorf("%w: channel %d: no answer in %v", bridge.ErrDeviceLost, p.channel, time.Since(start)))
			p.await(nil, nil, want, shutDown)
			break
		}
		pause = cancelStep
		timer.Reset(pause)
	}
	return p.word.Load()&want != 0
}

// awaitLook waits until the island has looked at what was put last, or there are events. The device
// beats, but one of its islands that does not look in heartbeatTimeout is lost, and the device with
// it. Time counts as in escalate. Must hold queue.
func (p *parker) awaitLook() {
	asked := p.mailbox.placed()
	ticker := time.NewTicker(cancelStep)
	defer ticker.Stop()
	for range heartbeatTimeout / cancelStep {
		if !p.await(nil, ticker.C, events, shutDown) || p.mailbox.looked(asked) {
			return
		}
	}
	p.mailbox.ep.fail(fmt.Errorf("%w: channel %d: no look in %v", bridge.ErrDeviceLost, p.channel, heartbeatTimeout))
	p.await(nil, nil, events, shutDown)
}

// addWaiting counts a call that starts (1) or ends (-1) to wait.
func (p *parker) addWaiting(n int32) {
	p.waiting.Add(n)
	p.mailbox.ep.dev.blocked.Add(int64(n))
}

// pollFor polls the mailbox at most n times until the half has one of the
// want flags. Must hold queue.
func (p *parker) pollFor(want uint64, n int32) bool {
	if p.mailbox.rx.TryLock() {
		p.spinLocked(want, n+1)
		p.mailbox.rx.Unlock()
	}
	return p.word.Load()&want != 0
}
