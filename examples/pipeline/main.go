// Command pipeline sends blocks through stages that are processes of a device, joined
// by channels of their own: host → stage → … → stage → host. No byte that goes from one
// stage to the next is seen by the host. With --nodes the stages are at nodes of a fabric,
// in turn, and the blocks go from node to node.
//
//	go run ./examples/pipeline
//	go run ./examples/pipeline --nodes 1.0.0,1.1.0
//	go run ./examples/pipeline --stages 5 --size 4194304 --address 'sim:?islands=4'
//
// Exit codes: 0 verified, 1 failed, 2 bad input, 130 interrupted.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

//go:embed device
var source embed.FS

// settings is the command line.
type settings struct {
	address              string
	stages, blocks, size int
	nodes                []fabric.Place // of the stages, in turn; none: all are at the device
}

func main() { command.Main("pipeline", pipeline) }

func pipeline(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dev, err := nfcomms.Open(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	in, out, err := s.start(ctx, dev)
	if err != nil {
		return err
	}
	before, err := hostTraffic(ctx, dev)
	if err != nil {
		return err
	}
	since := time.Now()
	if err := s.pass(ctx, in, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "verified: %d blocks of %d bytes through %d stages, %.0f MB/s (%s device)\n", s.blocks, s.size, s.stages,
		float64(s.blocks)*float64(s.size)/time.Since(since).Seconds()/1e6, dev.Info().Kind())
	if err != nil || s.nodes == nil {
		return err
	}
	return s.account(ctx, stdout, dev, before)
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	f := command.Flags("pipeline")
	f.StringVar(&s.address, "address", "", "device `address` (default sim:, with --nodes sim:?torus=2x2x1)")
	f.IntVar(&s.stages, "stages", 3, "`number` of stages")
	f.IntVar(&s.blocks, "blocks", 100, "`number` of blocks")
	f.IntVar(&s.size, "size", 1<<20, "`bytes` of a block")
	nodes := f.String("nodes", "", "`places` of the stages in a fabric, in turn, as 1.0.0,1.1.0")
	if err := command.Parse(f, args, stderr, "pipeline [flags]    blocks through processes of a device"); err != nil {
		return s, err
	}
	if s.stages < 1 || s.stages > 50 {
		return s, command.Inputf("--stages %d is not 1 to 50", s.stages)
	}
	if s.blocks < 1 || s.size < 0 {
		return s, command.Inputf("--blocks %d of --size %d are none", s.blocks, s.size)
	}
	return s, errors.Join(s.place(*nodes), command.NoArguments(f))
}

// start starts the stages, the last one first: each is told the target of the next. It
// returns the channels to the first and of the last.
func (s *settings) start(ctx context.Context, dev *nfcomms.Device) (in, out *nfcomms.Channel, err error) {
	places, err := s.places(ctx, dev)
	if err != nil {
		return nil, nil, err
	}
	var first, result nfcomms.Target
	for i := len(places) - 1; i >= 0; i-- {
		p, ports := places[i], 1
		if result == 0 {
			ports = 2
		}
		stage, err := p.dev.Start(ctx, nfcomms.Program{Name: p.name, Targets: ports, Argument: uint64(first)})
		if err != nil {
			return nil, nil, err
		}
		first = p.at(stage.First)
		if result == 0 {
			result = p.at(stage.First + 1)
		}
	}
	if in, err = dev.Subscribe(ctx, first); err != nil {
		return nil, nil, err
	}
	out, err = dev.Subscribe(ctx, result)
	return in, out, err
}

// pass sends the blocks and checks what comes back. Both happen at once: each stage
// holds one block.
func (s *settings) pass(ctx context.Context, in, out *nfcomms.Channel) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan error, 1)
	go func() {
		err := s.send(ctx, in)
		if err != nil {
			cancel()
		}
		sent <- err
	}()
	err := s.receive(ctx, out)
	if err != nil {
		cancel()
	}
	return errors.Join(<-sent, err)
}

func (s *settings) send(ctx context.Context, in *nfcomms.Channel) error {
	block := make([]byte, s.size)
	for n := range s.blocks {
		fill(block, n)
		if err := in.SendInd(ctx, block); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) receive(ctx context.Context, out *nfcomms.Channel) error {
	block, want := make([]byte, s.size), make([]byte, s.size)
	for n := range s.blocks {
		if _, err := out.ReceiveInd(ctx, block); err != nil {
			return err
		}
		fill(want, n+s.stages) // each adds 1
		if string(block) != string(want) {
			return fmt.Errorf("block %d is not what was sent", n)
		}
	}
	return nil
}

// fill writes bytes that count up from one.
func fill(block []byte, from int) {
	for i := range block {
		block[i] = byte(from + i)
	}
}
