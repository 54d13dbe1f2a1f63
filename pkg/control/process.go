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
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// process is a device process that a remote client started. Its name differs from all
// others: nodes number theirs alike.
type process struct {
	id    nfcomms.ProcessID
	m     *nfcommsv1.Process
	dev   *nfcomms.Device
	at    site
	epoch uint32
	stops int // calls that stop it: it does not end by itself
}

// site is where programs run: the device, or a node of its fabric.
type site struct {
	dev   *nfcomms.Device
	node  string         // empty: the device's own
	first nfcomms.Target // target 0 there
}

// siteOf finds the node that a field names.
func siteOf(ctx context.Context, dev *nfcomms.Device, field, node string) (site, error) {
	if node == "" {
		return site{dev: dev}, nil
	}
	n, err := parseNode(field, node)
	if err != nil || (fabric.Of(dev) != nil && n == dev.Info().Node) {
		return site{dev: dev}, err
	}
	far, err := fabric.Device(ctx, dev, n)
	return site{far, node, fabric.Target(n, 0)}, err
}

// started remembers a process and its owner, until it
// has returned. More than the device can run at once are not remembered.
func (d *device) started(dev *nfcomms.Device, at site, caller, program string, p nfcomms.Process) *nfcommsv1.Process {
	m := &nfcommsv1.Process{
		Name: ProcessName(d.id, at.node, p.ID), Node: at.node, Program: ProgramName(d.id, program),
		FirstTarget: uint32(p.First), Targets: uint32(p.Targets), Caller: caller, StartTime: timestamppb.Now(),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetLocked(m.Name)
	d.processes = append(d.processesLocked(), process{id: p.ID, m: m, dev: dev, at: at, epoch: p.Epoch})
	d.boundLocked(at.node, max(1, at.dev.Info().Contexts))
	return proto.CloneOf(m)
}

// boundLocked forgets the oldest processes of a node that has more than most. Must hold
// mu.
func (d *device) boundLocked(node string, most int) {
	over := -most
	for _, p := range d.processes {
		if p.at.node == node {
			over++
		}
	}
	d.processes = slices.DeleteFunc(d.processes, func(p process) bool {
		if p.at.node != node || over <= 0 {
			return false
		}
		over--
		return true
	})
}

// ended makes an event of each process that has returned by itself, and forgets it. The
// device is asked, as a heartbeat counts processes and names none.
func (d *device) ended(ctx context.Context) {
	for _, p := range d.processList() {
		running, err := admin.Running(ctx, p.at.dev, p.id)
		if err != nil {
			continue // the probe says why, or the node is lost
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
			d.forgetLocked(p.m.Name)
			return true
		}
	}
	return false
}

// stopProcess stops a process, and forgets it if it has ended.
func (d *device) stopProcess(ctx context.Context, at site, id nfcomms.ProcessID) error {
	name := ProcessName(d.id, at.node, id)
	d.mu.Lock()
	d.stopsLocked(name, 1)
	d.mu.Unlock()
	err := noProcess(at.dev.Stop(ctx, id), name)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopsLocked(name, -1)
	if err == nil || errors.Is(err, ErrNoProcess) {
		d.forgetLocked(name)
	}
	return err
}

// stopsLocked counts a call that begins (1) or ends (-1) to stop a process. Must hold mu.
func (d *device) stopsLocked(name string, n int) {
	for i := range d.processes {
		if d.processes[i].m.Name == name {
			d.processes[i].stops += n
		}
	}
}

// forgetLocked drops a process. Must hold mu.
func (d *device) forgetLocked(name string) {
	d.processes = slices.DeleteFunc(d.processes, func(p process) bool { return p.m.Name == name })
}

// processesLocked returns the processes of this epoch. Must hold mu.
func (d *device) processesLocked() []process {
	d.processes = slices.DeleteFunc(d.processes, func(p process) bool {
		return p.dev != d.dev || p.epoch != p.at.dev.Info().Epoch
	})
	return d.processes
}

// processList returns the processes of this epoch in the order of nodes and numbers.
func (d *device) processList() []process {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := slices.Clone(d.processesLocked())
	slices.SortFunc(list, func(a, b process) int {
		return cmp.Or(cmp.Compare(a.at.first, b.at.first), cmp.Compare(a.id, b.id))
	})
	return list
}

// key orders processes by device, node and number.
func (p process) key(device string) string {
	return fmt.Sprintf("%s\x00%020d%020d", device, uint64(p.at.first), uint64(p.id))
}
