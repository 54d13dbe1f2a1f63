package umod

import (
	"context"
	"errors"
	"slices"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// control makes the request of a CONTROL.
func (f *File) control(o *operation) {
	answer, err := f.ask(o, &o.raw.Payload)
	status, _ := bridge.StatusOf(err)
	c := uapi.Completion{Error: o.late(err)}
	if status == abi.ErrReset || status == abi.ErrFault || status == abi.ErrWithdrawn {
		c.Status = uint32(status) // there is no answer
	} else {
		p := uapi.Unpack[uapi.RequestProcess](&answer)
		p.Request, p.Status = uapi.Request(&o.raw.Payload), uint16(status)
		c.Payload = uapi.Pack(p)
	}
	f.complete(o, c)
}

// ask makes one request on the control channel. The caller fills the head of the answer.
func (f *File) ask(o *operation, req *uapi.Payload) (uapi.Payload, error) {
	dev, ctx := f.module.Device(), o.epoch()
	switch uapi.Request(req) {
	case uapi.ControlStart:
		return f.startProcess(ctx, dev, uapi.Unpack[uapi.RequestStart](req))
	case uapi.ControlStop:
		id := bridge.ProcessID(uapi.Unpack[uapi.RequestProcess](req).Process)
		if f.module.owner(id, f) {
			return uapi.Payload{}, bridge.ErrInvalid
		}
		return uapi.Payload{}, dev.Stop(ctx, id)
	case uapi.ControlLoad:
		return load(ctx, o, dev)
	case uapi.ControlProgram:
		var r uapi.RequestProgram
		names, err := dev.Programs(ctx)
		index := uapi.Unpack[uapi.RequestProgram](req).Index
		if err == nil && uint64(index) >= uint64(len(names)) {
			err = bridge.ErrNoProgram
		}
		if err == nil {
			copy(r.Name[:len(r.Name)-1], names[index])
		}
		return uapi.Pack(r), err
	case uapi.ControlRunning:
		var r uapi.RequestProcess
		running, err := dev.Running(ctx, bridge.ProcessID(uapi.Unpack[uapi.RequestProcess](req).Process))
		if running {
			r.Running = 1
		}
		return uapi.Pack(r), err
	default: // MEMORY: validRequest knows no others
		m, err := dev.Memory(ctx, int(uapi.Unpack[uapi.RequestMemory](req).Kind))
		return uapi.Pack(uapi.RequestMemory{Base: m.Base, Bytes: m.Size, Unused: m.Free}), err
	}
}

// startProcess runs a program, whose process is the file's.
func (f *File) startProcess(ctx context.Context, dev bridge.Device, r uapi.RequestStart) (uapi.Payload, error) {
	p, err := dev.Start(ctx, bridge.Program{
		Name: string(r.Name[:slices.Index(r.Name[:], 0)]), First: bridge.Target(r.First), Targets: int(r.Targets), Argument: r.Argument,
	})
	if err == nil {
		f.mu.Lock()
		f.processes[p.ID] = true
		f.mu.Unlock()
	}
	return uapi.Pack(uapi.RequestStart{Process: uint64(p.ID), First: uint32(p.First)}), err
}

// load adds the programs of an image; the answer of a device that refuses it has its reason.
func load(ctx context.Context, o *operation, dev bridge.Device) (uapi.Payload, error) {
	var r uapi.RequestLoad
	name, err := dev.Load(ctx, o.data())
	if refused := (*bridge.ImageError)(nil); errors.As(err, &refused) {
		name = refused.Why
	}
	copy(r.Text[:len(r.Text)-1], name)
	return uapi.Pack(r), err
}

// validRequest reports whether a CONTROL asks for something, and has no field that is not for it.
func validRequest(o *uapi.Op) bool {
	p := &o.Payload
	var known uapi.Payload // the fields that the request may have
	switch request := uapi.Request(p); request {
	case uapi.ControlStart:
		r := uapi.Unpack[uapi.RequestStart](p)
		if r.Name[uapi.NameLength-1] != 0 {
			return false
		}
		known = uapi.Pack(uapi.RequestStart{Request: request, Targets: r.Targets, Argument: r.Argument, First: r.First, Name: r.Name})
	case uapi.ControlStop, uapi.ControlRunning:
		known = uapi.Pack(uapi.RequestProcess{Request: request, Process: uapi.Unpack[uapi.RequestProcess](p).Process})
	case uapi.ControlProgram:
		known = uapi.Pack(uapi.RequestProgram{Request: request, Index: uapi.Unpack[uapi.RequestProgram](p).Index})
	case uapi.ControlMemory:
		known = uapi.Pack(uapi.RequestMemory{Request: request, Kind: uapi.Unpack[uapi.RequestMemory](p).Kind})
	case uapi.ControlLoad:
		return o.Length > 0 && *p == uapi.Pack(uapi.RequestLoad{Request: request})
	default:
		return false
	}
	return *p == known && o.Length == 0 && o.Address == 0
}
