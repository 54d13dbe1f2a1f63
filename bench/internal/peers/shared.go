package peers

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Contenders where the device is another process.
const (
	nameMPI             = "OpenMPI in C, other process" // by compare.NativeLibrary.Program, as the next
	nameMPISynchronous  = "OpenMPI's synchronous send in C, other process"
	nameSendIndAlloc    = "nfcomms SendInd of Alloc"
	nameReceiveIndAlloc = "nfcomms ReceiveInd of Alloc"
)

// shared reports whether a device is another process's.
func shared(dev *nfcomms.Device) bool { return dev.Info().Driver == "shm" }

// onRegion makes a contender that works on memory of Alloc, which it keeps.
func onRegion(dev *nfcomms.Device, size int, fn func(data []byte) (*compare.Contender, error)) (*compare.Contender, error) {
	region, err := dev.Alloc(size)
	if err != nil {
		return nil, err
	}
	copy(region.Bytes(), compare.Buffer(size))
	c, err := fn(region.Bytes())
	if err != nil {
		return nil, errors.Join(err, region.Close())
	}
	end := c.Close
	c.Close = func() error { return errors.Join(end(), region.Close()) }
	return c, nil
}

// sharedSmallGoals decides T2.
func sharedSmallGoals(t *compare.Comparison) []cli.Goal {
	missing := t.Busy
	if t.Find(nameMPI) == nil || t.Find(nameMPISynchronous) == nil {
		missing = "there is no OpenMPI"
	}
	return []cli.Goal{
		cli.Goal{ID: "T2", What: "56 B and its echo between two processes, µs",
			Value: stat.SpreadOf(t.Ns(compare.NameEcho)).Median / 1e3, Target: 0.6, AtMost: true}.Decide(t.Busy),
		cli.Goal{ID: "T2", What: "56 B and its echo : OpenMPI's, synchronous, time",
			Value: t.Ratio(compare.NameEcho, nameMPISynchronous).Median, Target: 1, AtMost: true}.Decide(missing),
		cli.Goal{ID: "T2", What: "56 B and its echo : OpenMPI's, which is queued, time",
			Value: t.Ratio(compare.NameEcho, nameMPI).Median, Target: 1.2, AtMost: true}.Decide(missing),
	}
}

// sharedBulkGoals decides T7 at one size.
func sharedBulkGoals(t *compare.Comparison, size int) (goals []cli.Goal) {
	for _, g := range []struct {
		name   string
		least  int
		target float64
	}{
		{nameSendIndAlloc, 64 << 10, 0.75}, {nameReceiveIndAlloc, 64 << 10, 0.75},
		{compare.NameSendInd, 1 << 20, 0.5}, {compare.NameReceiveInd, 1 << 20, 0.5},
	} {
		if size >= g.least {
			goals = append(goals, cli.Goal{ID: "T7", What: fmt.Sprintf("%s %s : memcpy, rate", cli.SizeText(size), g.name),
				Value: t.Ratio(compare.NameMemcpy, g.name).Median, Target: g.target}.Decide(t.Busy))
		}
	}
	return goals
}

// lineUpShared adds what concerns two processes at one transfer size.
func lineUpShared(ctx context.Context, t *compare.Comparison, dev *nfcomms.Device, size int) error {
	return t.LineUp(
		func() (*compare.Contender, error) {
			return onRegion(dev, size, func(data []byte) (*compare.Contender, error) {
				return compare.SendInd(ctx, dev, nameSendIndAlloc, 1, data)
			})
		},
		func() (*compare.Contender, error) {
			return onRegion(dev, size, func(data []byte) (*compare.Contender, error) {
				return compare.ReceiveInd(ctx, dev, nameReceiveIndAlloc, 1, data)
			})
		})
}
