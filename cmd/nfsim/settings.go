//go:build cgo

package main

import (
	"cmp"
	"runtime"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/device"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/scripted"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// settings is the device that the command line asks for.
type settings struct {
	bar        uint64
	shmMemory  uint64 // bytes that a client may map
	userMemory uint64 // bytes that all clients of a user may map
	config     firmware.Config
}

// parseSettings reads the options of the device.
func parseSettings(o *options) (*settings, error) {
	s := &settings{bar: 64 << 20, shmMemory: 16 << 30, userMemory: 64 << 30, config: firmware.Config{Runs: 1, Eager: wire.EagerEntries, HostRings: 1, Spin: defaultSpin()}}
	a := o.address()
	if err := a.Size("bar2", &s.bar, bridge.Limits[uint64]{Min: abi.PageSize, Max: barMax, Power: true}); err != nil {
		return nil, err
	}
	for name, to := range map[string]*uint64{"shm-memory": &s.shmMemory, "user-memory": &s.userMemory} {
		if err := a.Size(name, to, bridge.Limits[uint64]{Min: abi.PageSize, Max: 1 << 46}); err != nil {
			return nil, err
		}
	}
	if err := a.Count("host-rings", &s.config.HostRings, bridge.Limits[int]{Min: 0, Max: 1}); err != nil {
		return nil, err
	}
	return s, s.config.Parse(a)
}

// defaultSpin is zero on a single processor, where spinning only delays the other side.
func defaultSpin() time.Duration {
	if runtime.NumCPU() == 1 {
		return 0
	}
	return 25 * time.Microsecond
}

// barMax is the largest mailbox BAR: that of the largest shape fits.
const barMax = 16 << 30

// boot returns what starts an epoch: the shape the host asks for, and for the
// rest the command line's.
func (s *settings) boot(logFD int) device.Boot {
	return func(bus *firmware.Bus, shape device.Shape, epoch uint32, _ <-chan struct{}) (device.Instance, abi.Status) {
		c := s.config
		c.Bus, c.Epoch, c.LogFD = bus, epoch, logFD
		c.Channels = cmp.Or(int(shape.Channels), c.Channels)
		c.Managers = cmp.Or(int(shape.Mailboxes), c.Managers)
		c.Islands = cmp.Or(int(shape.Islands), c.Islands)
		c.Slots = cmp.Or(int(shape.Slots), c.Slots)
		c.Window = cmp.Or(int(shape.Window), c.Window)
		c.TargetTimeout = cmp.Or(shape.TargetTimeout, c.TargetTimeout)
		c.Memory[abi.EMEM] = cmp.Or(shape.EMEM, c.Memory[abi.EMEM])
		instance, status := firmware.Start(c)
		if status != abi.OK {
			return nil, status
		}
		return instance, abi.OK
	}
}

// script returns the shape of a scripted device.
func (s *settings) script() scripted.Shape {
	c := &s.config
	return scripted.Shape{
		Channels: c.Channels, Mailboxes: c.Managers, Islands: c.Islands, Slots: c.Slots, Window: c.Window,
		Contexts: c.Contexts, Beat: c.Beat, EMEM: c.Memory[abi.EMEM], TargetTimeout: c.TargetTimeout,
		Eager: c.Eager, HostRings: c.HostRings,
	}
}
