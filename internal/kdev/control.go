package kdev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// control sends a request to the device, with image after it if there is one,
// and returns the reply.
func (d *Device) control(ctx context.Context, req abi.Control, image []byte) (reply abi.Control, err error) {
	fill := func(o *op) {
		var s abi.Slot
		*s.Control() = req
		copy(o.raw.Payload[:], s.Bytes()[:])
		o.memory(&d.regions, image)
	}
	err = d.call(ctx, uapi.OpControl, fill, func(o *op) error {
		reply = o.control()
		return bridge.Error(abi.Status(reply.Status))
	})
	return reply, err
}

// Start runs a program as a new process.
func (d *Device) Start(ctx context.Context, p bridge.Program) (bridge.Process, error) {
	s, err := d.start(ctx, p)
	if err != nil {
		return s, fmt.Errorf("program %q: %w", p.Name, err)
	}
	return s, nil
}

func (d *Device) start(ctx context.Context, p bridge.Program) (bridge.Process, error) {
	req := abi.Control{Op: abi.ControlStart, A: uint64(p.First), B: uint64(p.Targets), C: p.Argument}
	if err := d.begin(ctx); err != nil {
		return bridge.Process{}, err
	}
	if p.Name == "" || len(p.Name) >= abi.NameSize || strings.IndexByte(p.Name, 0) >= 0 {
		return bridge.Process{}, bridge.ErrNoProgram
	}
	if limit := d.info.Load().Channels; p.Targets < 1 || p.Targets > limit || p.First > bridge.Target(limit-p.Targets) {
		return bridge.Process{}, fmt.Errorf("%d targets from %v: %w", p.Targets, p.First, bridge.ErrInvalid)
	}
	copy(req.Name[:], p.Name)
	r, err := d.control(ctx, req, nil)
	if err != nil {
		return bridge.Process{}, err
	}
	return bridge.Process{ID: bridge.ProcessID(r.A), First: bridge.Target(r.B), Targets: p.Targets}, nil
}

// Stop asks a process that this device started to return, and waits until it
// did. ErrInvalid if there is no such process.
func (d *Device) Stop(ctx context.Context, id bridge.ProcessID) error {
	// The module answers when the process has returned.
	if _, err := d.control(ctx, abi.Control{Op: abi.ControlStop, A: uint64(id)}, nil); err != nil {
		return fmt.Errorf("process %d: %w", id, err)
	}
	return nil
}

// Load adds the programs of an image and returns the name of the first.
func (d *Device) Load(ctx context.Context, image []byte) (string, error) {
	if err := d.begin(ctx); err != nil {
		return "", err
	}
	if !d.info.Load().CanLoad {
		return "", fmt.Errorf("%w by this device", bridge.ErrNotSupported)
	}
	if len(image) == 0 {
		return "", fmt.Errorf("empty image: %w", bridge.ErrInvalid)
	}
	r, err := d.control(ctx, abi.Control{Op: abi.ControlLoad, A: uint64(len(image))}, image)
	if why := r.Why(); err != nil && why != "" {
		err = &bridge.ImageError{Why: why, Err: err}
	}
	first, err := name(r, err)
	if err != nil {
		return "", fmt.Errorf("image of %d bytes: %w", len(image), err)
	}
	return first, nil
}

// name returns the name in a reply.
func name(r abi.Control, err error) (string, error) {
	if err != nil {
		return "", err
	}
	n := bytes.IndexByte(r.Name[:], 0)
	if n < 1 {
		return "", fmt.Errorf("%w: reply with name %q", bridge.ErrFault, r.Name)
	}
	return string(r.Name[:n]), nil
}

// programsMax bounds what a device may list.
const programsMax = 1 << 16

// Programs lists the names Start accepts.
func (d *Device) Programs(ctx context.Context) ([]string, error) {
	var names []string
	for i := range uint64(programsMax) {
		name, err := name(d.control(ctx, abi.Control{Op: abi.ControlProgram, A: i}, nil))
		if errors.Is(err, bridge.ErrNoProgram) {
			break
		}
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// Running reports whether a process has not returned yet.
func (d *Device) Running(ctx context.Context, id bridge.ProcessID) (bool, error) {
	if err := d.begin(ctx); err != nil {
		return false, err
	}
	r, err := d.control(ctx, abi.Control{Op: abi.ControlRunning, A: uint64(id)}, nil)
	return err == nil && r.B != 0, err
}

// Memory describes one of the device's memory types.
func (d *Device) Memory(ctx context.Context, kind int) (bridge.Memory, error) {
	if err := d.begin(ctx); err != nil {
		return bridge.Memory{}, err
	}
	if kind < 0 || kind >= abi.MemoryCount {
		return bridge.Memory{}, fmt.Errorf("no type %d: %w", kind, bridge.ErrInvalid)
	}
	r, err := d.control(ctx, abi.Control{Op: abi.ControlMemory, A: uint64(kind)}, nil)
	if err != nil {
		return bridge.Memory{}, err
	}
	return bridge.Memory{Base: r.A, Size: r.B, Free: r.C}, nil
}
