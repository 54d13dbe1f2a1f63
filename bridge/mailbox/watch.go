package mailbox

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/wire"
)

const (
	heartbeatMisses = 5 // heartbeats that may be missing, at least for heartbeatTimeout
	looks           = 5 // … and looks in that time that saw none
	asksAfter       = 2 // such looks, after which a carrier is asked whether it is there
)

// watch looks after the heartbeat while calls are asleep; nothing runs when
// none is.
type watch struct {
	ep    *epoch
	every time.Duration // from one look to the next
	most  int           // looks that may see no heartbeat …
	limit time.Duration // … and the time that they take
	on    atomic.Bool   // the timer runs

	mu         sync.Mutex // guards what follows and the heartbeat slot
	timer      *time.Timer
	dead       bool // the area must not be touched any more
	last       wire.Heartbeat
	seen       time.Time // when last.Beat was found changed
	looked     time.Time // the last look, or zero
	beaten     time.Time // when the device wrote last.Beat, as far as that is known
	blank      int       // looks since then
	heartbeats uint64    // that were seen, whatever the device's numbers are
	mute       int       // looks of the timer since a heartbeat or an answer of the carrier
	asking     bool      // the carrier has not answered yet

	audit audit // the timer's own
}

func (w *watch) init(ep *epoch, beat time.Duration) {
	w.ep = ep
	near := max(heartbeatTimeout, heartbeatMisses*beat)
	w.every = near / looks
	w.limit = max(near, ep.dev.answer)
	w.most = int(w.limit / w.every)
	w.seen = time.Now()
	w.beaten = w.seen
	w.audit.init(ep, w.every)
	w.look()
}

// wakeUp starts the timer if it does not run.
func (w *watch) wakeUp() {
	if !w.on.Load() && w.on.CompareAndSwap(false, true) {
		w.arm(true)
	}
}

// arm sets the timer. fresh forgives the time before it, in which nobody looked.
func (w *watch) arm(fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return
	}
	if fresh && !w.lookLocked() {
		w.seen, w.blank, w.mute = time.Now(), 0, 0
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.every, w.tick)
	} else {
		w.timer.Reset(w.every)
	}
}

// tick latches the device as lost when its heartbeat is overdue. It counts
// looks, not time alone: a machine that stood still is no dead device.
func (w *watch) tick() {
	w.heed()
	if age, blank := w.look(); blank > w.most && age > w.limit {
		w.ep.fail(w.lost(age))
		return
	}
	if w.isMute() {
		w.ep.fail(fmt.Errorf("%w: what carries its messages does not answer", bridge.ErrDeviceLost))
		return
	}
	w.audit.look(w.parked())
	if w.ep.dev.waitedFor() {
		w.arm(false)
		return
	}
	w.on.Store(false)
	if w.ep.dev.waitedFor() {
		w.wakeUp()
	}
}

// heed latches the device as lost when the area's state word is not ready: the carrier of a remote
// device may set it long before a heartbeat is overdue.
func (w *watch) heed() {
	w.mu.Lock()
	serves := w.dead || atomic.LoadUint32(&w.ep.area.State) == wire.DeviceReady // SYNC: state
	w.mu.Unlock()
	if !serves {
		w.ep.fail(fmt.Errorf("%w: it serves no more", bridge.ErrDeviceLost))
	}
}

// isMute reports whether the carrier has not answered for as long as a near device may be silent. It
// asks after some looks without a heartbeat. A device without a carrier is never mute. It follows a
// look of the timer.
func (w *watch) isMute() bool {
	carrier, ok := w.ep.dev.port.(Carrier)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blank > 0 {
		w.mute++
	}
	if w.mute >= asksAfter && !w.asking {
		w.asking = true
		carrier.Ask(w.answered)
	}
	return w.mute > looks
}

// answered takes note of whether the carrier is there.
func (w *watch) answered(there bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking = false
	if there {
		w.mute = 0
	}
}

// waitedFor reports whether anybody sleeps until a message of the device arrives.
func (d *device) waitedFor() bool {
	return d.blocked.Load() > 0 || d.armed.Load() > 0 || d.asking.Load() > 0
}

func (w *watch) lost(age time.Duration) error {
	return fmt.Errorf("%w: no heartbeat for %v", bridge.ErrDeviceLost, age.Round(time.Millisecond))
}

// look reads the heartbeat and returns the age of the last new one, and how
// many looks there were since.
func (w *watch) look() (age time.Duration, blank int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.lookLocked() {
		w.blank++
	}
	return time.Since(w.seen), w.blank
}

// age returns the age of the last heartbeat. It is no look: a device is not lost the sooner for
// being asked often.
func (w *watch) age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookLocked()
	return time.Since(w.beaten)
}

// count returns how many heartbeats were seen.
func (w *watch) count() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookLocked()
	return w.heartbeats
}

// parked returns how many offers the device had parked at the last heartbeat.
func (w *watch) parked() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.Parked
}

// lookLocked reports whether there is a new heartbeat. Must hold mu.
func (w *watch) lookLocked() bool {
	var s wire.Slot
	if w.dead || !readBeat(&w.ep.area.Heartbeat, &s) {
		return false
	}
	fresh := s.Heartbeat().Beat != w.last.Beat
	w.last = *s.Heartbeat()
	now := time.Now()
	if fresh {
		w.seen, w.blank, w.mute = now, 0, 0
		w.beaten = w.written(now)
		w.heartbeats++
	}
	w.looked = now
	return fresh
}

// written returns when the device wrote the heartbeat that was found now and was not there at the last look. If
// the device's time of it is between the two by the clock of this machine, the device has that clock.
// Otherwise it is now. Must hold mu.
func (w *watch) written(now time.Time) time.Time {
	clock, ok := monotonic()
	age := clock - time.Duration(w.last.NowNS)
	if !ok || age < 0 || age > now.Sub(w.looked) || age > w.limit {
		return now
	}
	return now.Add(-age)
}

// readBeat copies the heartbeat; false while the device writes it.
func readBeat(from, to *wire.Slot) bool {
	for range 4 {
		h := wire.Header(atomic.LoadUint64(&from.Header)) // SYNC: heartbeat
		for i := range from.Payload {
			to.Payload[i] = atomic.LoadUint64(&from.Payload[i])
		}
		again := wire.Header(atomic.LoadUint64(&from.Header)) // SYNC: heartbeat
		if h == again && h.Type() == wire.TypeHeartbeat && h.Sequence() == uint16(to.Heartbeat().Beat) {
			return true
		}
	}
	return false
}

// stop ends the watch. Nobody touches the area afterwards.
func (w *watch) stop() {
	w.mu.Lock()
	w.dead = true
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
}

// health describes the last heartbeat.
func (w *watch) health() (bridge.Health, error) {
	age, _ := w.look()
	w.mu.Lock()
	b, beaten := w.last, w.beaten
	w.mu.Unlock()
	if age > w.limit {
		return bridge.Health{}, w.lost(age)
	}
	return bridge.Health{
		Beat: b.Beat, Age: time.Since(beaten), Diagnostic: b.Diagnostic, Processes: int(b.Processes),
		Messages: b.Messages, Bytes: b.Bytes, Dropped: b.Dropped, Queued: b.Parked,
	}, nil
}
