package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// place reads --nodes.
func (s *settings) place(nodes string) error {
	if s.address == "" {
		s.address = "sim:"
		if nodes != "" {
			s.address = "sim:?torus=2x2x1"
		}
	}
	if nodes == "" {
		return nil
	}
	for _, name := range strings.Split(nodes, ",") {
		n, err := fabric.Parse(name)
		if err != nil {
			return command.Inputf("--nodes: %w", err)
		}
		s.nodes = append(s.nodes, n)
	}
	return nil
}

// stagePlace is where a stage runs: a device, which has the program, and how targets there
// are called by others.
type stagePlace struct {
	dev  *nfcomms.Device
	name string
	at   func(nfcomms.Target) nfcomms.Target
}

// places returns where each stage runs. Every node loads the program for itself.
func (s *settings) places(ctx context.Context, dev *nfcomms.Device) ([]stagePlace, error) {
	image, err := program.Build(ctx, source, program.Options{})
	if err != nil {
		return nil, err
	}
	known := []stagePlace{{dev: dev, at: func(t nfcomms.Target) nfcomms.Target { return t }}}
	if s.nodes != nil {
		known = make([]stagePlace, len(s.nodes))
	}
	for i, n := range s.nodes {
		there, err := device(ctx, dev, n)
		if err != nil {
			return nil, err
		}
		known[i] = stagePlace{dev: there, at: func(t nfcomms.Target) nfcomms.Target { return fabric.Target(n, t) }}
	}
	for i := range known {
		if known[i].name, err = known[i].dev.Load(ctx, image); err != nil {
			return nil, err
		}
	}
	all := make([]stagePlace, s.stages)
	for i := range all {
		all[i] = known[i%len(known)]
	}
	return all, nil
}

// device returns that of a node, which may be the one that was opened.
func device(ctx context.Context, dev *nfcomms.Device, n fabric.Place) (*nfcomms.Device, error) {
	if dev.Info().Node == n && fabric.Of(dev) != nil {
		return dev, nil
	}
	there, err := fabric.Device(ctx, dev, n)
	if errors.Is(err, nfcomms.ErrInvalid) || errors.Is(err, nfcomms.ErrNotSupported) {
		err = command.InputError{Err: err}
	}
	return there, err
}

// traffic is what a node sent and received by its links.
type traffic struct{ sent, received uint64 }

// hostTraffic returns that of the node that the host is at; nothing without a fabric.
func hostTraffic(ctx context.Context, dev *nfcomms.Device) (t traffic, err error) {
	f := fabric.Of(dev)
	if f == nil {
		return t, nil
	}
	state, err := f.State(ctx)
	if err != nil {
		return t, err
	}
	x, y, z := state.Node.X(), state.Node.Y(), state.Node.Z()
	for _, l := range state.Nodes[int(x)+state.Side[0]*(int(y)+state.Side[1]*int(z))].Links {
		t.sent += l.BytesSent
		t.received += l.BytesReceived
	}
	return t, nil
}

// account says how much of the blocks the host's node saw: all of it once each way, if none
// went through it from one stage to the next.
func (s *settings) account(ctx context.Context, to io.Writer, dev *nfcomms.Device, before traffic) error {
	after, err := hostTraffic(ctx, dev)
	if err != nil {
		return err
	}
	blocks := float64(s.blocks) * float64(s.size)
	sent, received := float64(after.sent-before.sent), float64(after.received-before.received)
	finding := "no block passed through it between stages"
	if max(sent, received) > 1.5*blocks+1e6 {
		finding = "more than the host's own blocks passed through it"
	}
	_, err = fmt.Fprintf(to, "the host's node sent %.1f MB and received %.1f MB for %.1f MB of blocks: %s\n",
		sent/1e6, received/1e6, blocks/1e6, finding)
	return err
}
