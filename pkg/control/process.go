package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// process is a device process that a remote client started.
type process struct {
	id    nfcomms.ProcessID
	m     *nfcommsv1.Process
	dev   *nfcomms.Device
	epoch uint32
	stops int // calls that stop it: it does not end by itself
}

// started remembers a process, so that somebody can tell later whose it is, until it
// has returned. More than the device can run at once are not remembered.
func (d *device) started(dev *nfcomms.Device, caller, program string, p nfcomms.Process) *nfcommsv1.Process {
	info := dev.Info()
	m := &nfcommsv1.Process{
		Name: ProcessName(d.id, p.ID), Program: ProgramName(d.id, program),
		FirstTarget: uint32(p.First), Targets: uint32(p.Targets), Caller: caller, StartTime: timestamppb.Now(),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetLocked(p.ID)
	d.processes = append(d.processesLocked(), process{id: p.ID, m: m, dev: dev, epoch: uint32(info.Epoch)})
	if over := len(d.processes) - max(1, info.Contexts); over > 0 {
		d.processes = slices.Clone(d.processes[over:])
	}
	return proto.CloneOf(m)
}

// ended makes an event of each process that has returned by itself, and forgets it. The
// device is asked, as a heartbeat counts processes and names none.
func (d *device) ended(ctx context.Context, dev *nfcomms.Device) {
	for _, p := range d.processList() {
		running, err := dev.Running(ctx, p.id)
		if err != nil {
			return // the probe says why
		}
		if !running && d.forget(p) {
			d.event(nfcommsv1.Event_TYPE_PROCESS_ENDED, p.m.GetName(), "ended by itself", nil)
		}
	}
}

// forget drops a process that has returned by itself; false if it was stopped, or is of
// another epoch.
func (d *device) forget(p process) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.processesLocked() {
		if q.m == p.m && q.stops == 0 {
			d.forgetLocked(p.id)
			return true
		}
	}
	return false
}

// stopProcess stops a process, and forgets it if it is gone.
func (d *device) stopProcess(ctx context.Context, dev *nfcomms.Device, id nfcomms.ProcessID) error {
	d.mu.Lock()
	d.stopsLocked(id, 1)
	d.mu.Unlock()
	err := noProcess(dev.Stop(ctx, id), id)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopsLocked(id, -1)
	if err == nil || errors.Is(err, ErrNoProcess) {
		d.forgetLocked(id)
	}
	return err
}

// stopsLocked counts a call that begins (1) or ends (-1) to stop a process. Must hold mu.
func (d *device) stopsLocked(id nfcomms.ProcessID, n int) {
	for i := range d.processes {
		if d.processes[i].id == id {
			d.processes[i].stops += n
		}
	}
}

// forgetLocked drops a process. Must hold mu.
func (d *device) forgetLocked(id nfcomms.ProcessID) {
	d.processes = slices.DeleteFunc(d.processes, func(p process) bool { return p.id == id })
}

// processesLocked returns the processes of this epoch. Must hold mu.
func (d *device) processesLocked() []process {
	d.processes = slices.DeleteFunc(d.processes, func(p process) bool {
		return p.dev != d.dev || p.epoch != uint32(p.dev.Info().Epoch)
	})
	return d.processes
}

// processList returns the processes of this epoch in the order of their numbers.
func (d *device) processList() []process {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := slices.Clone(d.processesLocked())
	slices.SortFunc(list, func(a, b process) int { return cmp.Compare(a.id, b.id) })
	return list
}

// processKey orders processes by device and number.
func processKey(device string, id nfcomms.ProcessID) string {
	return fmt.Sprintf("%s\x00%020d", device, uint64(id))
}
