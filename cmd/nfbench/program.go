package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// program is a started device program with a channel to each of its targets.
type program struct {
	dev   *nfcomms.Device
	proc  nfcomms.Process
	chans []*nfcomms.Channel
}

// start runs a program and subscribes all of its targets.
func start(ctx context.Context, dev *nfcomms.Device, name string, targets int) (*program, error) {
	proc, err := dev.Start(ctx, nfcomms.Program{Name: name, Targets: targets})
	if err != nil {
		return nil, fmt.Errorf("start program %s with %d targets: %w", name, targets, err)
	}
	p := &program{dev: dev, proc: proc}
	for i := range targets {
		ch, err := dev.Subscribe(ctx, proc.First+nfcomms.Target(i))
		if err != nil {
			return nil, errors.Join(err, p.stop(ctx))
		}
		p.chans = append(p.chans, ch)
	}
	return p, nil
}

// stopWithin bounds the wait for a device process that is told to stop.
const stopWithin = 30 * time.Second

// stop closes the channels and ends the process, also after ctx ended.
func (p *program) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	var errs []error
	for _, ch := range p.chans {
		errs = append(errs, ch.Close())
	}
	return errors.Join(append(errs, p.dev.Stop(ctx, p.proc.ID))...)
}

// words is a request to a program: little-endian 64-bit words.
func words(w ...uint64) []byte {
	b := make([]byte, 0, 8*len(w))
	for _, v := range w {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// flood asks the program of that name to write n messages of size bytes.
func flood(ctx context.Context, ch *nfcomms.Channel, n, size int) error {
	return ch.Send(ctx, words(uint64(n), uint64(size)))
}

// floodTransfers in the size word of a flood request asks for transfers.
const floodTransfers = 1 << 63

// floodInd asks the program of that name for n transfers of size bytes.
func floodInd(ctx context.Context, ch *nfcomms.Channel, n, size int) error {
	return ch.Send(ctx, words(uint64(n), floodTransfers|uint64(size)))
}
