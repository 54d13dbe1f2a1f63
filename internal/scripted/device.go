package scripted

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Shape gives the limits of a scripted device. Zero fields take the defaults named.
type Shape struct {
	// Channels bounds target ids; 256.
	Channels int
	// Mailboxes is the number of mailboxes, a multiple of Islands; 2.
	Mailboxes int
	// Islands is the number of doorbells; 1.
	Islands int
	// Slots is the size of a ring, a power of two; 64.
	Slots int
	// Window is the number of gather lists in flight per transfer; 16.
	Window int
	// Runs is 1 for a device that takes lists of runs.
	Runs int
	// Eager is the number of entries of an eager transfer; 0: there are none.
	Eager int
	// HostRings is 1 for a device that writes what a host polls in memory of the host's own, if that is
	// a Poster and agrees.
	HostRings int
	// NoSums is a device without checksums of transfers.
	NoSums bool
	// Contexts bounds the running processes; 32.
	Contexts int
	// Beat is the heartbeat interval; 100 ms.
	Beat time.Duration
	// EMEM bounds what a process can allocate, in bytes; 256 MiB.
	EMEM uint64
	// TargetTimeout ends offers that wait longer; 0: they wait for ever.
	TargetTimeout time.Duration
}

// sound reports whether a device can have the shape.
func (sh Shape) sound() bool {
	return sh.Channels >= abi.TargetFirst && sh.Channels <= abi.ChannelsMax &&
		sh.Islands <= wire.IslandsMax && sh.Mailboxes <= wire.MailboxesMax && sh.Mailboxes%sh.Islands == 0 &&
		sh.Slots&(sh.Slots-1) == 0 && sh.Slots >= wire.SlotsMin && sh.Slots <= wire.SlotsMax &&
		sh.Window&(sh.Window-1) == 0 && sh.Window <= wire.WindowMax && sh.Eager <= wire.EagerEntries
}

// ParseShape reads the options of the conformance suite, see Run. Options that are not given are as
// in a "sim:" address.
func ParseShape(options string) (Shape, error) {
	sh := Shape{Eager: wire.EagerEntries}
	values, err := url.ParseQuery(options)
	if err != nil {
		return sh, fmt.Errorf("parse options: %w", err)
	}
	ints := map[string]*int{
		"managers": &sh.Mailboxes, "islands": &sh.Islands, "channels": &sh.Channels,
		"slots": &sh.Slots, "window": &sh.Window, "runs": &sh.Runs, "eager": &sh.Eager,
	}
	for name, v := range values {
		switch name {
		case "emem":
			sh.EMEM, err = units.ParseBytes(v[0])
		case "target-timeout":
			sh.TargetTimeout, err = time.ParseDuration(v[0])
		default:
			p, ok := ints[name]
			if !ok {
				return sh, fmt.Errorf("option %q is unknown", name)
			}
			*p, err = strconv.Atoi(v[0])
		}
		if err != nil {
			return sh, fmt.Errorf("option %q: %w", name, err)
		}
	}
	return sh, nil
}

func (sh Shape) withDefaults() Shape {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&sh.Channels, 256)
	def(&sh.Mailboxes, 2)
	def(&sh.Islands, 1)
	def(&sh.Slots, 64)
	def(&sh.Window, 16)
	def(&sh.Contexts, 32)
	if sh.Beat == 0 {
		sh.Beat = 100 * time.Millisecond
	}
	if sh.EMEM == 0 {
		sh.EMEM = 256 << 20
	}
	return sh
}

// Hooks alter what a scripted device does. A nil hook leaves that step correct. The
// device's lock is held during a hook, so hooks run one at a time and must not
// call the device's methods.
type Hooks struct {
	// Lay may change the area page before the device says it is ready.
	Lay func(a *wire.Area)
	// Take sees a message from the host before the device does; with false
	// the device never learns of it.
	Take func(in *wire.Slot) bool
	// Give returns what is published in place of a message to the host. The
	// phase bit of a returned header is applied to the right phase by
	// exclusive or, so a set bit makes the slot invisible.
	Give func(out wire.Slot) []wire.Slot
	// Head returns the counter that is published in place of how many messages of the host the device
	// took from a mailbox.
	Head func(head uint64) uint64
	// Rewrite may change a message that was just published; with true its slot is written once more.
	Rewrite func(out *wire.Slot) bool
	// Mailbox returns the mailbox that a message to the host goes through, in
	// place of its channel's.
	Mailbox func(out *wire.Slot, own int) int
	// Lose means that a gather list of a transfer that moves is lost on its
	// way, so that the device asks for it again.
	Lose func(d abi.Direction, number uint32) bool
}

// Device is a device in Go: it implements the port of the host mailbox manager
// (mailbox.Port), speaks docs/protocol.md and runs the programs of the
// conformance suite. Hooks make it break the protocol. Its methods are safe for
// concurrent use.
type Device struct {
	shape Shape
	area  *area
	host  Host
	bell  *os.File      // nil on a bus of another
	wake  chan struct{} // one token: the device has something to do

	mu      sync.Mutex // guards everything below
	hooks   Hooks
	cur     *epoch
	epochID uint32
	fenced  bool     // no DMA any more
	dead    bool     // neither takes nor gives nor beats
	mute    bool     // does not beat
	offence []string // rules the host broke
	closed  bool

	taken   atomic.Uint64
	dropped atomic.Uint64
}

// epoch is one epoch of the device.
type epoch struct {
	quit     chan struct{}
	done     sync.WaitGroup
	channels map[uint32]*channel
	procs    map[uint64]*process
	nextProc uint64
	gen      uint64
	timed    map[*channel]struct{} // channels whose offer has a deadline
	queue    [][]wire.Slot         // per mailbox, not published yet
	beat     uint64
	next     time.Time // when a heartbeat is due
	moved    uint64
	born     time.Time
}

// Host is what a scripted device reaches of its host. The device's lock is held during a
// call.
type Host interface {
	// Ring interrupts the host for an island.
	Ring(island int)
	// Move copies bytes between device memory and host memory at a bus
	// address; false if some of it is out of reach.
	Move(mem []byte, address uint64, d abi.Direction) bool
}

// New builds a device that behaves until SetHooks says otherwise. Host
// memory is this process's own. Close releases it; a mailbox manager that owns
// it closes it.
func New(sh Shape, h Hooks) (*Device, error) {
	sh = sh.withDefaults()
	mem, err := mapMemory(sh.areaSize())
	if err != nil {
		return nil, err
	}
	bell, err := newDoorbell()
	if err != nil {
		unmap(mem)
		return nil, err
	}
	s := newDevice(sh, h, &ownHost{bell}, mem)
	s.bell = bell
	s.boot()
	return s, nil
}

// NewOn is New for a device whose host is elsewhere: area is the
// memory they share, and its epoch has the number given. ErrTooLarge if the
// mailbox area does not fit.
func NewOn(area []byte, host Host, sh Shape, h Hooks, epoch uint32) (*Device, abi.Status) {
	sh = sh.withDefaults()
	if !sh.sound() {
		return nil, abi.ErrInvalid
	}
	size := sh.areaSize()
	if size > uint64(len(area)) {
		return nil, abi.ErrTooLarge
	}
	s := newDevice(sh, h, host, area[:size])
	s.epochID = epoch - 1
	s.boot()
	return s, abi.OK
}

func newDevice(sh Shape, h Hooks, host Host, mem []byte) *Device {
	s := &Device{shape: sh, area: newArea(sh, mem), host: host, wake: make(chan struct{}, 1), hooks: h}
	if p, ok := host.(Poster); ok && sh.HostRings != 0 {
		s.area.own.host = p
	} else {
		s.shape.HostRings = 0
	}
	return s
}

// boot starts the next epoch in a zeroed area.
func (s *Device) boot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epochID++
	s.fenced, s.dead, s.mute = false, false, false
	s.area.lay(s.shape, s.epochID)
	s.cur = s.newEpoch()
	s.bootPrograms()
	s.writeBeat()
	if s.hooks.Lay != nil {
		s.hooks.Lay(s.area.page())
	}
	if s.area.page().State == wire.DeviceBooting {
		atomic.StoreUint32(&s.area.page().State, wire.DeviceReady)
	}
	s.cur.done.Go(func() { s.run(s.cur) })
}

func (s *Device) newEpoch() *epoch {
	return &epoch{
		quit: make(chan struct{}), channels: make(map[uint32]*channel),
		procs: make(map[uint64]*process), timed: make(map[*channel]struct{}),
		queue: make([][]wire.Slot, s.shape.Mailboxes), born: time.Now(), next: time.Now(),
	}
}

// halt ends the epoch: processes return, nothing moves any more.
func (s *Device) halt() {
	s.mu.Lock()
	l := s.cur
	s.killLocked()
	close(l.quit)
	for _, p := range l.procs {
		p.stopLocked(abi.ErrReset)
	}
	s.mu.Unlock()
	l.done.Wait()
}

// Area returns the mailbox area.
func (s *Device) Area() (unsafe.Pointer, uint64) { return s.area.base, s.area.size }

// Ring wakes the device.
func (s *Device) Ring(int) {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Doorbell returns the event file the device rings, nil on a bus of another.
func (s *Device) Doorbell() *os.File { return s.bell }

// Assist does nothing: the device moves its own bytes.
func (s *Device) Assist() bool { return false }

// Yield gives way to the script's goroutine.
func (s *Device) Yield() { runtime.Gosched() }

// Map returns where the memory is in this process: the device reads and writes it there.
func (s *Device) Map(data []byte) (uint64, error) {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))), nil
}

// Unmap has nothing to end.
func (s *Device) Unmap(uint64, uint64) {}

// Fence stops DMA for the rest of the epoch.
func (s *Device) Fence() {
	s.mu.Lock()
	s.fenced, s.area.own.lost = true, true
	s.mu.Unlock()
}

// Restart ends the epoch and boots the next one; hooks stay.
func (s *Device) Restart(context.Context) error {
	s.halt()
	s.boot()
	return nil
}

// Close stops the device and unmaps an area of its own.
func (s *Device) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was {
		return os.ErrClosed
	}
	s.halt()
	if s.bell == nil {
		return nil
	}
	unmap(s.area.mem)
	return s.bell.Close()
}

// SetHooks replaces the hooks.
func (s *Device) SetHooks(h Hooks) {
	s.mu.Lock()
	s.hooks = h
	s.mu.Unlock()
}

// Kill makes the device stop dead: no answers, no heartbeat, no DMA, until the
// next Restart.
func (s *Device) Kill() {
	s.mu.Lock()
	s.killLocked()
	s.mu.Unlock()
}

func (s *Device) killLocked() { s.dead, s.fenced, s.area.own.lost = true, true, true }

// StopBeat makes the device stop writing heartbeats, and nothing else.
func (s *Device) StopBeat() {
	s.mu.Lock()
	s.mute = true
	s.mu.Unlock()
}

// Inject publishes messages past the Give hook; phase bits as in Hooks.Give.
func (s *Device) Inject(messages ...wire.Slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		s.enqueueLocked(m)
	}
	s.flushLocked()
}

// Epoch returns the device's epoch.
func (s *Device) Epoch() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epochID
}

// Taken counts messages the device took from the host.
func (s *Device) Taken() uint64 { return s.taken.Load() }

// Offences lists the rules of the protocol that the host broke.
func (s *Device) Offences() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.offence...)
}

// accuseLocked records that the host broke a rule. Must hold mu.
func (s *Device) accuseLocked(format string, args ...any) {
	if len(s.offence) < 32 {
		s.offence = append(s.offence, fmt.Sprintf(format, args...))
	}
}
