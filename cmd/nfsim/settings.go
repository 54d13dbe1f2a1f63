//go:build cgo

package main

import (
	"cmp"
	"runtime"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/bridgetest"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/device"
	"github.com/nfcomms/nfcomms/firmware"
)

// settings is the device that the command line asks for.
type settings struct {
	bar    uint64
	config firmware.Config
}

// parseSettings reads the options of the device.
func parseSettings(o *options) (*settings, error) {
	s := &settings{bar: 64 << 20}
	if runtime.NumCPU() > 1 { // else spinning only delays the other side
		s.config.Spin = 25 * time.Microsecond
	}
	a, c := o.address(), &s.config
	var stack uint64
	counts := map[string]*int{
		"managers": &c.Managers, "islands": &c.Islands, "microengines": &c.Microengines,
		"contexts": &c.Contexts, "channels": &c.Channels, "slots": &c.Slots, "window": &c.Window, "engines": &c.Engines,
	}
	sizes := map[string]*uint64{
		"bar2": &s.bar, "stack": &stack, "cls": &c.Memory[abi.CLS], "ctm": &c.Memory[abi.CTM],
		"imem": &c.Memory[abi.IMEM], "emem": &c.Memory[abi.EMEM],
	}
	times := map[string]*time.Duration{"beat": &c.Beat, "target-timeout": &c.TargetTimeout, "spin": &c.Spin}
	var err error
	for name, to := range counts {
		err = cmp.Or(err, a.Count(name, to))
	}
	for name, to := range sizes {
		err = cmp.Or(err, a.Size(name, to))
	}
	for name, to := range times {
		err = cmp.Or(err, a.Duration(name, to))
	}
	c.Stack = int(stack)
	return s, err
}

// boot returns what starts a life: the shape the host asks for, and for the
// rest the command line's.
func (s *settings) boot(logFD int) device.Boot {
	return func(bus *firmware.Bus, shape device.Shape, epoch uint32, _ <-chan struct{}) (device.Life, abi.Status) {
		c := s.config
		c.Bus, c.Epoch, c.LogFD = bus, epoch, logFD
		c.Channels = cmp.Or(int(shape.Channels), c.Channels)
		c.Managers = cmp.Or(int(shape.Mailboxes), c.Managers)
		c.Islands = cmp.Or(int(shape.Islands), c.Islands)
		c.Slots = cmp.Or(int(shape.Slots), c.Slots)
		c.Window = cmp.Or(int(shape.Window), c.Window)
		c.TargetTimeout = cmp.Or(shape.TargetTimeout, c.TargetTimeout)
		c.Memory[abi.EMEM] = cmp.Or(shape.EMEM, c.Memory[abi.EMEM])
		life, status := firmware.Start(c)
		if status != abi.OK {
			return nil, status
		}
		return life, abi.OK
	}
}

// script returns the shape of a scripted device.
func (s *settings) script() bridgetest.Shape {
	c := &s.config
	return bridgetest.Shape{
		Channels: c.Channels, Mailboxes: c.Managers, Islands: c.Islands, Slots: c.Slots, Window: c.Window,
		Contexts: c.Contexts, Beat: c.Beat, EMEM: c.Memory[abi.EMEM], TargetTimeout: c.TargetTimeout,
	}
}
