package main

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/apps/internal/spread"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

//go:embed device
var source embed.FS

// Messages to and from the manager, as in device/tsp.c.
type (
	order    struct{ Nodes, Climbs, Seed uint64 }
	progress struct{ Climbs, Cost, Winner, Excess, Local uint64 }
)

// onDevice loads the programs and has the device find the tour. done is told of
// climbs as they are reported.
func onDevice(ctx context.Context, dev *nfcomms.Device, cities []city, s settings, done func(n int)) (r result, err error) {
	image, err := program.Build(ctx, source, program.Options{})
	if err != nil {
		return r, err
	}
	if _, err := dev.Load(ctx, image); err != nil {
		return r, err
	}
	// Ended here and not by ctx: climbers before the manager, whose board they share.
	manager, err := dev.Run(context.WithoutCancel(ctx), nfcomms.Program{Name: "tsp.manager"})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, spread.Close(dev, manager)) }()
	ch := manager.Channels[0]
	board, err := give(ctx, ch, cities, order{uint64(len(cities)), uint64(s.restarts), s.seed})
	if err != nil {
		return r, err
	}
	climbers, err := spread.Run(ctx, dev, s.climbers, nfcomms.Program{Name: "tsp.climber", Argument: board})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, spread.Close(dev, climbers...)) }()
	last, err := follow(ctx, ch, s.restarts, done)
	if err != nil {
		return r, err
	}
	r = result{tour: make([]city, len(cities)), length: last.Cost, winner: last.Winner, climbers: len(climbers), excess: int(last.Excess), local: int(last.Local)}
	_, err = ch.ReceiveInd(ctx, r.tour)
	return r, err
}

// give hands the manager its order and the cities; the answer is the address of the
// board in device memory.
func give(ctx context.Context, ch *nfcomms.Channel, cities []city, o order) (uint64, error) {
	if err := nfcomms.ChanOf[order](ch).Send(ctx, o); err != nil {
		return 0, err
	}
	if err := ch.SendInd(ctx, cities); err != nil {
		return 0, err
	}
	return nfcomms.ChanOf[uint64](ch).Receive(ctx)
}

// follow takes the manager's reports until all climbs are in.
func follow(ctx context.Context, ch *nfcomms.Channel, climbs int, done func(n int)) (p progress, err error) {
	for p.Climbs < uint64(climbs) {
		before := p.Climbs
		if p, err = nfcomms.ChanOf[progress](ch).Receive(ctx); err != nil {
			return p, fmt.Errorf("after %d of %d climbs: %w", before, climbs, err)
		}
		done(int(p.Climbs - before))
	}
	return p, nil
}
