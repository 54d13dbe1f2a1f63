package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Contenders where the device is another process.
const (
	nameMPI             = "OpenMPI in C, other process" // by nativeLibrary.program
	nameSendIndAlloc    = "nfcomms SendInd of Alloc"
	nameReceiveIndAlloc = "nfcomms ReceiveInd of Alloc"
)

// shared reports whether a device is another process's.
func shared(dev *nfcomms.Device) bool { return dev.Info().Driver == "shm" }

// onRegion makes a contender that works on memory of Alloc, which it keeps.
func onRegion(dev *nfcomms.Device, size int, name string, fn func(data []byte) (*contender, error)) (*contender, error) {
	region, err := dev.Alloc(size)
	if err != nil {
		return nil, err
	}
	copy(region.Bytes(), buffer(size))
	c, err := fn(region.Bytes())
	if err != nil {
		return nil, errors.Join(err, region.Close())
	}
	c.name = name
	end := c.close
	c.close = func() error { return errors.Join(end(), region.Close()) }
	return c, nil
}

// sharedSmallGoals decides T2.
func sharedSmallGoals(t *comparison) []Goal {
	missing := t.busy
	if t.find(nameMPI) == nil {
		missing = "there is no OpenMPI"
	}
	return []Goal{
		Goal{ID: "T2", What: "56 B and its echo between two processes, µs",
			Value: spread(t.ns(nameEcho)).Median / 1e3, Target: 0.6, AtMost: true}.decide(t.busy),
		Goal{ID: "T2", What: "56 B and its echo : OpenMPI's shared memory, time",
			Value: t.ratio(nameEcho, nameMPI).Median, Target: 0.55, AtMost: true}.decide(missing),
	}
}

// sharedBulkGoals decides T7 at one size.
func sharedBulkGoals(t *comparison, size int) (goals []Goal) {
	for _, g := range []struct {
		name   string
		least  int
		target float64
	}{
		{nameSendIndAlloc, 64 << 10, 0.75}, {nameReceiveIndAlloc, 64 << 10, 0.75},
		{nameSendInd, 1 << 20, 0.5}, {nameReceiveInd, 1 << 20, 0.5},
	} {
		if size >= g.least {
			goals = append(goals, Goal{ID: "T7", What: fmt.Sprintf("%s %s : memcpy, rate", sizeText(size), g.name),
				Value: t.ratio(nameMemcpy, g.name).Median, Target: g.target}.decide(t.busy))
		}
	}
	return goals
}

// lineUpShared adds what concerns two processes at one transfer size.
func lineUpShared(ctx context.Context, t *comparison, dev *nfcomms.Device, size int) error {
	if !shared(dev) {
		return nil
	}
	return t.lineUp(
		func() (*contender, error) {
			return onRegion(dev, size, nameSendIndAlloc, func(data []byte) (*contender, error) { return sendInd(ctx, dev, data, 1) })
		},
		func() (*contender, error) {
			return onRegion(dev, size, nameReceiveIndAlloc, func(data []byte) (*contender, error) { return receiveInd(ctx, dev, data, 1) })
		})
}
