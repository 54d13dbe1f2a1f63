//go:build cgo

package device

import (
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pci"
)

// controlLocked starts what CONTROL asks for. It is over when BUSY clears; what
// is written meanwhile is ignored. Must hold mu.
func (d *Device) controlLocked(v uint32) {
	if d.regs.busy {
		return
	}
	switch v {
	case pci.ControlReset:
		d.regs.busy, d.regs.control = true, v
		d.dog.stop()
		instance, shape, quit := d.running, d.regs.shapeOf(), make(chan struct{})
		d.running, d.quit, d.regs.booting = nil, quit, true
		go d.reset(instance, shape, quit)
	case pci.ControlQuiesce:
		d.regs.busy, d.regs.control = true, v
		instance := d.running
		go d.quiesce(instance)
	}
}

// reset ends an epoch and boots the next. The old one is over even if there will
// be no next: a host that resets must know that nothing of it moves.
func (d *Device) reset(old Instance, shape Shape, quit <-chan struct{}) {
	var instance Instance
	status := abi.ErrNoMemory
	d.mu.Lock()
	d.epoch++
	epoch := d.epoch
	d.mu.Unlock()
	if err := d.end(old); err != nil {
		d.log.Error("clear mailbox area", "err", err)
	} else {
		instance, status = d.options.Boot(d.bus, shape, epoch, quit)
	}
	d.log.Info("reset", "epoch", epoch, "status", status)

	d.mu.Lock()
	defer d.mu.Unlock()
	if status == abi.OK {
		d.running = instance
		d.epochs++
	}
	d.regs.shapeStatus = status
	d.regs.fenced, d.regs.bitten, d.regs.booting, d.quit = false, false, false, nil
	d.doneLocked()
}

// quiesce fences DMA for the rest of an epoch.
func (d *Device) quiesce(instance Instance) {
	if instance != nil {
		instance.Fence()
	}
	d.log.Info("quiesced")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.regs.fenced = true
	d.doneLocked()
}

// doneLocked clears BUSY and says so. Must hold mu.
func (d *Device) doneLocked() {
	d.regs.busy = false
	d.idle.Broadcast()
	d.armLocked()
	d.bus.Raise(0)
}

// armLocked starts the watchdog anew if there is something to watch for. Must
// hold mu.
func (d *Device) armLocked() {
	d.dog.stop()
	if d.regs.watchdog != 0 && d.running != nil && !d.regs.busy {
		d.dog.start(d.regs.watchdog, d.bite)
	}
}

// bite ends the present epoch: its host is lost. All that it held is freed.
func (d *Device) bite(generation uint64) {
	d.mu.Lock()
	if d.dog.generation != generation || time.Now().Before(d.dog.until) || d.regs.busy || d.running == nil {
		d.mu.Unlock()
		return
	}
	instance, limit := d.running, time.Duration(d.regs.watchdog)*time.Millisecond
	d.running = nil
	d.regs.busy, d.regs.bitten = true, true
	d.mu.Unlock()
	d.log.Warn("the host is silent: DMA is fenced", "limit", limit)
	if err := d.end(instance); err != nil {
		d.log.Error("clear mailbox area", "err", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doneLocked()
}

// watchdog is a timer that bites unless it is fed. The device's lock guards it.
type watchdog struct {
	timer      *time.Timer
	until      time.Time
	generation uint64 // a timer that fired late belongs to none
}

func (w *watchdog) start(ms uint32, bite func(generation uint64)) {
	w.generation++
	g, limit := w.generation, time.Duration(ms)*time.Millisecond
	w.until = time.Now().Add(limit)
	w.timer = time.AfterFunc(limit, func() { bite(g) })
}

// feed gives the host another ms milliseconds.
func (w *watchdog) feed(ms uint32) {
	if w.timer != nil {
		limit := time.Duration(ms) * time.Millisecond
		w.until = time.Now().Add(limit)
		w.timer.Reset(limit)
	}
}

func (w *watchdog) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.generation++
}
