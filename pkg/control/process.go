package control

import (
	"cmp"
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
}

// started remembers a process, so that somebody can tell later whose it is. The
// device does not report when one returns by itself: of those that cannot all run
// at once the oldest are forgotten.
func (d *device) started(dev *nfcomms.Device, caller, program string, p nfcomms.Process) *nfcommsv1.Process {
	info := dev.Info()
	m := &nfcommsv1.Process{
		Name: ProcessName(d.id, p.ID), Program: ProgramName(d.id, program),
		FirstTarget: uint32(p.First), Targets: uint32(p.Targets), Caller: caller, StartTime: timestamppb.Now(),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetLocked(p.ID)
	d.processes = append(d.processesLocked(), process{p.ID, m, dev, uint32(info.Epoch)})
	if over := len(d.processes) - max(1, info.Contexts); over > 0 {
		d.processes = slices.Clone(d.processes[over:])
	}
	return proto.CloneOf(m)
}

// forget drops a process that is gone.
func (d *device) forget(id nfcomms.ProcessID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetLocked(id)
}

// forgetLocked is forget. Must hold mu.
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
