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
// and returns the answer.
func (d *Device) control(ctx context.Context, req uapi.Payload, image []byte) (answer uapi.Payload, err error) {
	fill := func(o *op) {
		o.raw.Payload = req
		o.memory(&d.regions, image)
	}
	err = d.call(ctx, uapi.OpControl, fill, func(o *op) error {
		answer = o.got.Payload
		return bridge.Error(abi.Status(uapi.Status(&answer)))
	})
	return answer, err
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
	if err := d.begin(ctx); err != nil {
		return bridge.Process{}, err
	}
	if p.Name == "" || len(p.Name) >= abi.NameSize || strings.IndexByte(p.Name, 0) >= 0 {
		return bridge.Process{}, bridge.ErrNoProgram
	}
	if limit := d.info.Load().Channels; p.Targets < 1 || p.Targets > limit || p.First > bridge.Target(limit-p.Targets) {
		return bridge.Process{}, fmt.Errorf("%d targets from %v: %w", p.Targets, p.First, bridge.ErrInvalid)
	}
	req := uapi.RequestStart{Request: uapi.ControlStart, First: uint32(p.First), Targets: uint32(p.Targets), Argument: p.Argument}
	copy(req.Name[:], p.Name)
	answer, err := d.control(ctx, uapi.Pack(req), nil)
	if err != nil {
		return bridge.Process{}, err
	}
	r := uapi.Unpack[uapi.RequestStart](&answer)
	return bridge.Process{ID: bridge.ProcessID(r.Process), First: bridge.Target(r.First), Targets: p.Targets}, nil
}

// Stop asks a process that this device started to return, and waits until it
// did. ErrInvalid if there is no such process.
func (d *Device) Stop(ctx context.Context, id bridge.ProcessID) error {
	// The module answers when the process has returned.
	req := uapi.RequestProcess{Request: uapi.ControlStop, Process: uint64(id)}
	if _, err := d.control(ctx, uapi.Pack(req), nil); err != nil {
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
	answer, err := d.control(ctx, uapi.Pack(uapi.RequestLoad{Request: uapi.ControlLoad}), image)
	r := uapi.Unpack[uapi.RequestLoad](&answer)
	if why := plain(r.Text[:]); err != nil && why != "" {
		err = &bridge.ImageError{Why: why, Err: err}
	}
	first, err := name(r.Text[:], err)
	if err != nil {
		return "", fmt.Errorf("image of %d bytes: %w", len(image), err)
	}
	return first, nil
}

// plain returns a text of the device; empty if it is none.
func plain(text []byte) string {
	text, _, _ = bytes.Cut(text, []byte{0})
	for _, b := range text {
		if b < ' ' || b > '~' {
			return ""
		}
	}
	return string(text)
}

// name returns the name in an answer.
func name(text []byte, err error) (string, error) {
	if err != nil {
		return "", err
	}
	n := bytes.IndexByte(text, 0)
	if n < 1 {
		return "", fmt.Errorf("%w: reply with name %q", bridge.ErrFault, text)
	}
	return string(text[:n]), nil
}

// programsMax bounds what a device may list.
const programsMax = 1 << 16

// Programs lists the names Start accepts.
func (d *Device) Programs(ctx context.Context) ([]string, error) {
	var names []string
	for i := range uint32(programsMax) {
		answer, err := d.control(ctx, uapi.Pack(uapi.RequestProgram{Request: uapi.ControlProgram, Index: i}), nil)
		r := uapi.Unpack[uapi.RequestProgram](&answer)
		name, err := name(r.Name[:], err)
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
	answer, err := d.control(ctx, uapi.Pack(uapi.RequestProcess{Request: uapi.ControlRunning, Process: uint64(id)}), nil)
	return err == nil && uapi.Unpack[uapi.RequestProcess](&answer).Running != 0, err
}

// Memory describes one of the device's memory types.
func (d *Device) Memory(ctx context.Context, kind int) (bridge.Memory, error) {
	if err := d.begin(ctx); err != nil {
		return bridge.Memory{}, err
	}
	if kind < 0 || kind >= abi.MemoryCount {
		return bridge.Memory{}, fmt.Errorf("no type %d: %w", kind, bridge.ErrInvalid)
	}
	answer, err := d.control(ctx, uapi.Pack(uapi.RequestMemory{Request: uapi.ControlMemory, Kind: uint32(kind)}), nil)
	if err != nil {
		return bridge.Memory{}, err
	}
	r := uapi.Unpack[uapi.RequestMemory](&answer)
	return bridge.Memory{Base: r.Base, Size: r.Bytes, Free: r.Unused}, nil
}
