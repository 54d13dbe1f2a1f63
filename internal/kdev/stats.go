package kdev

import (
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

const (
	heartbeatMisses = 5           // heartbeats that may be missing, at least for silence
	silence         = time.Second // that a device may keep
)

// readHealth asks the module for the heartbeat and its counters.
func (d *Device) readHealth(h *uapi.Health) error {
	*h = uapi.Health{Size: uint32(unsafe.Sizeof(*h))}
	switch errno := d.ioctl(uapi.IOCHealth, unsafe.Pointer(h)); errno {
	case 0:
		return nil
	case syscall.EBADF:
		return errDeviceClosed
	case syscall.ENODEV:
		return errRemoved
	default:
		return errno
	}
}

// Health returns the device's last heartbeat. ErrDeviceLost if it is overdue.
func (d *Device) Health() (bridge.Health, error) {
	var h uapi.Health
	if err := d.readHealth(&h); err != nil {
		return bridge.Health{}, err
	}
	if err := stateErr(h.State); err != nil {
		return bridge.Health{}, err
	}
	age := time.Duration(min(h.AgeNS, 1<<62))
	if age > max(silence, heartbeatMisses*d.info.Load().Beat) {
		return bridge.Health{}, fmt.Errorf("%w: no heartbeat for %v", bridge.ErrDeviceLost, age.Round(time.Millisecond))
	}
	return bridge.Health{
		Beat: h.Beat, Age: age, Diagnostic: abi.Diagnostic(h.Diagnostic), Processes: int(h.Processes),
		Messages: h.Messages, Bytes: h.Bytes, Dropped: h.DeviceDropped, Queued: h.Parked,
	}, nil
}

// Stats returns counters since Open. Those of the driver are about all users of
// the device.
func (d *Device) Stats() bridge.Stats {
	var h uapi.Health
	if d.readHealth(&h) != nil {
		h = d.final
	}
	s := d.sum()
	s.Blocked = int(d.blocked.Load())
	s.Wakeups = since(h.Interrupts, d.base.Interrupts)
	s.Spurious = since(h.Spurious, d.base.Spurious)
	s.Doorbells = since(h.Doorbells, d.base.Doorbells)
	s.Dropped = since(h.Dropped, d.base.Dropped)
	s.Faults = since(h.Faults, d.base.Faults)
	s.Resets = since(h.Resets, d.base.Resets)
	s.LogDropped = d.log.Dropped()
	d.regions.AddTo(&s)
	s.Age = time.Duration(min(h.AgeNS, 1<<62))
	s.Profile = d.profile()
	return s
}

// since returns how much a counter grew; nothing if it was never read.
func since(now, then uint64) uint64 { return max(now, then) - then }

// sum adds up the channels that are open and those that were.
func (d *Device) sum() bridge.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := bridge.Stats{ChannelStats: d.retired, Channels: len(d.channels)}
	for c := range d.channels {
		s.ChannelStats.Add(c.Stats())
	}
	return s
}

// profile returns how calls went; every one is measured.
func (d *Device) profile() *bridge.Profile {
	p := new(bridge.Profile)
	for i := range abi.Direction(2) {
		d.meters[i].direct.AddTo(p.Direct.Of(i))
		d.meters[i].indirect.AddTo(p.Indirect.Of(i))
		p.Direct.Of(i).Every, p.Indirect.Of(i).Every = 1, 1
	}
	return p
}
