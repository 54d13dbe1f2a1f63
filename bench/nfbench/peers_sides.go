package main

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// How many contenders there are, for the progress bar.
const (
	smallSides = 11
	bulkSides  = 7
)

// newSmall lines up the contenders at 56 bytes. The comparison is never nil; close
// it also after an error.
func newSmall(ctx context.Context, dev *nfcomms.Device, c *child) (*comparison, error) {
	t := &comparison{}
	memcpy := newMemcpy(smallMemcpy) // tells whether the machine is quiet
	return t, t.lineUp(ready(memcpy), ready(newChan()),
		ready(newPipe(c, wireEcho, messageSize, smallBatch)),
		ready(newUnix(c, wireEcho, messageSize, smallBatch)),
		func() (*contender, error) { return newMangos(c, wireEcho, messageSize, smallBatch) },
		func() (*contender, error) { return newGRPC(ctx, c, grpcEcho, messageSize, smallBatch) },
		func() (*contender, error) { return newSend(ctx, dev) },
		func() (*contender, error) { return newReceive(ctx, dev) },
		func() (*contender, error) { return newEcho(ctx, dev) },
		func() (*contender, error) { return newSendInd(ctx, dev, messageSize, smallBatch) },
		func() (*contender, error) { return newReceiveInd(ctx, dev, messageSize, smallBatch) })
}

// newBulk lines up the contenders at one transfer size, as newSmall.
func newBulk(ctx context.Context, dev *nfcomms.Device, c *child, size int) (*comparison, error) {
	t := &comparison{}
	err := t.lineUp(ready(newMemcpy(size)), ready(newPipe(c, wireTake, size, 1)), ready(newUnix(c, wireTake, size, 1)),
		func() (*contender, error) { return newMangos(c, wireTake, size, 1) },
		func() (*contender, error) { return newGRPC(ctx, c, grpcTake, size, 1) },
		func() (*contender, error) { return newSendInd(ctx, dev, size, 1) },
		func() (*contender, error) { return newReceiveInd(ctx, dev, size, 1) })
	if err == nil {
		err = lineUpShared(ctx, t, dev, size)
	}
	return t, err
}

// idleGoals decides T3.
func (r *PeersReport) idleGoals() []Goal {
	unknown := ""
	if r.Blocked.ThreadsBefore < 0 {
		unknown = "threads cannot be counted here"
	}
	per := float64(r.Blocked.ThreadsDuring-r.Blocked.ThreadsBefore) / float64(r.Blocked.Sends)
	return []Goal{
		Goal{ID: "T3", What: "idle device, % of a core", Value: r.Idle.CPUPercent, Target: 0.1, AtMost: true}.decide(""),
		Goal{ID: "T3", What: fmt.Sprintf("OS threads per blocked send, %d sends", r.Blocked.Sends),
			Value: max(per, 0), Target: 0.001, AtMost: true}.decide(unknown),
	}
}

// smallGoals decides T1, T1e, T8 and the message half of T12.
func smallGoals(t *comparison) []Goal {
	return append([]Goal{
		Goal{ID: "T1", What: "56 B Send : Go channel ping-pong, time",
			Value: t.ratio(nameSend, nameChan).Median, Target: 0.85, AtMost: true}.decide(t.busy),
		Goal{ID: "T1e", What: "56 B Send and its echo : Go channel ping-pong, time",
			Value: t.ratio(nameEcho, nameChan).Median, Target: 1, AtMost: true}.decide(t.busy),
		Goal{ID: "T8", What: "56 B SendInd : Send, time",
			Value: t.ratio(nameSendInd, nameSend).Median, Target: 1.3, AtMost: true}.decide(t.busy),
		Goal{ID: "T8", What: "56 B ReceiveInd : Receive, time",
			Value: t.ratio(nameReceiveInd, nameReceive).Median, Target: 1.3, AtMost: true}.decide(t.busy),
	}, allocGoals(t, nameSend, nameReceive, nameSendInd, nameReceiveInd)...)
}

// bulkGoals decides T5 at one size: memcpy's time over that of the transfer, which
// has a second processor to help from 1 MiB on, where there is one. The goal says
// nothing of sizes below 64 KiB.
func bulkGoals(t *comparison, size int) []Goal {
	if size < 64<<10 {
		return nil
	}
	target := 0.95
	if size >= 1<<20 && runtime.GOMAXPROCS(0) > 1 {
		target = 1.5
	}
	goals := make([]Goal, 0, 2)
	for _, name := range []string{nameSendInd, nameReceiveInd} {
		g := Goal{ID: "T5", What: fmt.Sprintf("%s %s : memcpy, rate", sizeText(size), name),
			Value: t.ratio(nameMemcpy, name).Median, Target: target}
		goals = append(goals, g.decide(t.busy))
	}
	return goals
}

// table writes the report for people.
func (r *PeersReport) table(w io.Writer) {
	r.Header.table(w)
	fmt.Fprintf(w, "Small messages, %d rounds of %g ms a side; time per operation, median (min..max)\n", r.Rounds, r.SliceMs)
	t := texttable.Numbers("56 B", "what", "wall", "(min..max)", "CPU", "p50", "p99", "allocs/op", "time / nfcomms")
	for _, row := range r.Small {
		name := row.Peer
		if row.Peer == nameMemcpy {
			name = fmt.Sprintf("memcpy of %s", sizeText(row.Size))
		}
		t.Add(name, row.Does, units.Duration(row.Ns.Median), units.Duration(row.Ns.Min)+".."+units.Duration(row.Ns.Max), units.Duration(row.CPUNs.Median),
			units.Duration(row.P50Ns), units.Duration(row.P99Ns), fmt.Sprintf("%.2f", row.Allocs), times(row.VsNFComms))
	}
	t.Write(w)
	fmt.Fprintf(w, "\nBulk, GB/s, median (min..max)\n")
	t = texttable.Numbers("", "what", "size", "GB/s", "(min..max)", "CPU s/GB", "p50", "p99", "allocs/op", "time / nfcomms")
	for _, row := range r.Bulk {
		t.Add(row.Peer, row.Does, sizeText(row.Size), fmt.Sprintf("%.2f", row.GBs.Median),
			fmt.Sprintf("%.2f..%.2f", row.GBs.Min, row.GBs.Max), fmt.Sprintf("%.3f", row.CPUNs.Median/float64(row.Size)),
			units.Duration(row.P50Ns), units.Duration(row.P99Ns), fmt.Sprintf("%.2f", row.Allocs), times(row.VsNFComms))
	}
	t.Write(w)
	for i, text := range r.NotMeasured {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, text)
	}
	fmt.Fprintf(w, "\nIdle device: %.3f %% of a core over %.1f s. OS threads: %d, with %d blocked sends %d.\n%v.\n\n",
		r.Idle.CPUPercent, r.Idle.Seconds, r.Blocked.ThreadsBefore, r.Blocked.Sends, r.Blocked.ThreadsDuring, r.Rest)
	writeGoals(w, r.Goals)
}

// allocGoals decides T12: less than one object in a hundred operations is the
// harness's own.
func allocGoals(t *comparison, names ...string) []Goal {
	goals := make([]Goal, 0, len(names))
	for _, name := range names {
		goals = append(goals, Goal{ID: "T12", What: name + ", allocations per operation",
			Value: t.find(name).allocs(), Target: 0.01, AtMost: true}.decide(""))
	}
	return goals
}
