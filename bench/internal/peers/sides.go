package peers

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// How many contenders there are, for the progress bar.
const (
	smallSides = 12
	bulkSides  = 10
	farSides   = 2 // where the device reaches memory of this process in place
)

// newSmall lines up the contenders at 56 bytes. The comparison is never nil; close
// it also after an error.
func newSmall(ctx context.Context, dev *nfcomms.Device, c *compare.Child) (*compare.Comparison, error) {
	t := &compare.Comparison{}
	memcpy := compare.NewMemcpy(compare.SmallMemcpy) // tells whether the machine is quiet
	return t, t.LineUp(compare.Ready(memcpy), compare.Ready(compare.NewChan()),
		compare.Ready(compare.NewPipe(c, compare.WireEcho, compare.MessageSize, compare.SmallBatch)),
		compare.Ready(compare.NewUnix(c, compare.WireEcho, compare.MessageSize, compare.SmallBatch)),
		func() (*compare.Contender, error) {
			return compare.NewMangos(c, compare.WireEcho, compare.MessageSize, compare.SmallBatch)
		},
		func() (*compare.Contender, error) {
			return compare.NewGRPC(ctx, c, compare.GRPCEcho, compare.MessageSize, compare.SmallBatch)
		},
		func() (*compare.Contender, error) { return compare.NewSend(ctx, dev) },
		func() (*compare.Contender, error) { return compare.NewReceive(ctx, dev) },
		func() (*compare.Contender, error) { return compare.NewEcho(ctx, dev) },
		func() (*compare.Contender, error) { return compare.NewCall(ctx, dev) },
		func() (*compare.Contender, error) {
			return compare.NewSendInd(ctx, dev, compare.MessageSize, compare.SmallBatch)
		},
		func() (*compare.Contender, error) {
			return compare.NewReceiveInd(ctx, dev, compare.MessageSize, compare.SmallBatch)
		})
}

// newBulk lines up the contenders at one transfer size, as newSmall.
func newBulk(ctx context.Context, dev *nfcomms.Device, c *compare.Child, size int) (*compare.Comparison, error) {
	t := &compare.Comparison{}
	err := t.LineUp(compare.Ready(compare.NewMemcpy(size)), compare.Ready(compare.NewPipe(c, compare.WireTake, size, 1)), compare.Ready(compare.NewUnix(c, compare.WireTake, size, 1)),
		func() (*compare.Contender, error) { return compare.NewMangos(c, compare.WireTake, size, 1) },
		func() (*compare.Contender, error) { return compare.NewGRPC(ctx, c, compare.GRPCTake, size, 1) },
		func() (*compare.Contender, error) { return compare.NewSendInd(ctx, dev, size, 1) },
		func() (*compare.Contender, error) { return compare.NewReceiveInd(ctx, dev, size, 1) },
		compare.Ready(compare.NewMemcpyCold(size)),
		func() (*compare.Contender, error) {
			return compare.SendInd(ctx, dev, compare.NameSendIndCold, 1, compare.Buffers(size, compare.ColdCount(size))...)
		},
		func() (*compare.Contender, error) {
			return compare.ReceiveInd(ctx, dev, compare.NameReceiveIndCold, 1, compare.Buffers(size, compare.ColdCount(size))...)
		})
	switch {
	case err != nil:
	case shared(dev):
		err = lineUpShared(ctx, t, dev, size)
	default:
		err = t.LineUp(
			func() (*compare.Contender, error) { return compare.NewFar(ctx, dev, size, false) },
			func() (*compare.Contender, error) { return compare.NewFar(ctx, dev, size, true) })
	}
	return t, err
}

// idleGoals decides T3.
func (r *Report) idleGoals() []cli.Goal {
	unknown := ""
	if r.Blocked.ThreadsBefore < 0 {
		unknown = "threads cannot be counted here"
	}
	per := float64(r.Blocked.ThreadsDuring-r.Blocked.ThreadsBefore) / float64(r.Blocked.Sends)
	return []cli.Goal{
		cli.Goal{ID: "T3", What: "idle device, % of a core", Value: r.Idle.CPUPercent, Target: 0.1, AtMost: true}.Decide(""),
		cli.Goal{ID: "T3", What: fmt.Sprintf("OS threads per blocked send, %d sends", r.Blocked.Sends),
			Value: max(per, 0), Target: 0.001, AtMost: true}.Decide(unknown),
	}
}

// smallGoals decides T1, T1e, T8 and the message half of T12.
func smallGoals(t *compare.Comparison) []cli.Goal {
	return append([]cli.Goal{
		cli.Goal{ID: "T1", What: "56 B Send : Go channel ping-pong, time",
			Value: t.Ratio(compare.NameSend, compare.NameChan).Median, Target: 0.85, AtMost: true}.Decide(t.Busy),
		cli.Goal{ID: "T1e", What: "56 B Call and its answer : Go channel ping-pong, time",
			Value: t.Ratio(compare.NameCall, compare.NameChan).Median, Target: 0.9, AtMost: true}.Decide(t.Busy),
		cli.Goal{ID: "T8", What: "56 B SendInd : Send, time",
			Value: t.Ratio(compare.NameSendInd, compare.NameSend).Median, Target: 1.3, AtMost: true}.Decide(t.Busy),
		cli.Goal{ID: "T8", What: "56 B ReceiveInd : Receive, time",
			Value: t.Ratio(compare.NameReceiveInd, compare.NameReceive).Median, Target: 1.3, AtMost: true}.Decide(t.Busy),
	}, allocGoals(t, compare.NameSend, compare.NameReceive, compare.NameSendInd, compare.NameReceiveInd)...)
}

// bulkGoals decides T5 at one size: memcpy's time over that of the transfer, which
// has a second processor to help from 1 MiB on, where there is one. Both use buffers
// in turn: the same one each time is in a cache of the processor that copies it. The
// goal says nothing of sizes below 64 KiB.
func bulkGoals(t *compare.Comparison, size int) []cli.Goal {
	if size < 64<<10 {
		return nil
	}
	target := 0.95
	if size >= 1<<20 && runtime.GOMAXPROCS(0) > 1 {
		target = 1.5
	}
	goals := make([]cli.Goal, 0, 2)
	for _, name := range []string{compare.NameSendIndCold, compare.NameReceiveIndCold} {
		g := cli.Goal{ID: "T5", What: fmt.Sprintf("%s %s : memcpy, rate", cli.SizeText(size), name),
			Value: t.Ratio(compare.NameMemcpyCold, name).Median, Target: target}
		goals = append(goals, g.Decide(t.Busy))
	}
	return goals
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	r.Header.Table(w)
	fmt.Fprintf(w, "Small messages, %d rounds of %g ms a side; time per operation, median (min..max)\n", r.Rounds, r.SliceMs)
	writeTimes(w, "56 B", r.Small)
	if len(r.Gifts) > 0 {
		fmt.Fprintf(w, "\nMemory that another process reads in place; time per operation, median (min..max)\n")
		writeTimes(w, "", r.Gifts)
	}
	fmt.Fprintf(w, "\nBulk, GB/s, median (min..max)\n")
	t := texttable.Numbers("", "what", "size", "GB/s", "(min..max)", "CPU s/GB", "p50", "p99", "allocs/op", "time / nfcomms", "time / limit")
	for _, row := range r.Bulk {
		t.Add(row.Peer, row.Does, cli.SizeText(row.Size), fmt.Sprintf("%.2f", row.GBs.Median),
			fmt.Sprintf("%.2f..%.2f", row.GBs.Min, row.GBs.Max), fmt.Sprintf("%.3f", row.CPUNs.Median/float64(row.Size)),
			units.Duration(row.P50Ns), units.Duration(row.P99Ns), fmt.Sprintf("%.2f", row.Allocs), stat.Times(row.VsNFComms), overLimit(row.VsLimit))
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
	cli.WriteGoals(w, r.Goals)
}

// writeTimes writes a table of rows by their times.
func writeTimes(w io.Writer, title string, rows []Row) {
	t := texttable.Numbers(title, "what", "wall", "(min..max)", "CPU", "p50", "p99", "allocs/op", "time / nfcomms", "time / limit")
	for _, row := range rows {
		name := row.Peer
		if row.Peer == compare.NameMemcpy {
			name = fmt.Sprintf("memcpy of %s", cli.SizeText(row.Size))
		}
		t.Add(name, row.Does, units.Duration(row.Ns.Median), units.Duration(row.Ns.Min)+".."+units.Duration(row.Ns.Max), units.Duration(row.CPUNs.Median),
			units.Duration(row.P50Ns), units.Duration(row.P99Ns), fmt.Sprintf("%.2f", row.Allocs), stat.Times(row.VsNFComms), overLimit(row.VsLimit))
	}
	t.Write(w)
}

// overLimit is a ratio to a limit, where there is one.
func overLimit(s stat.Spread) string {
	if s.Median == 0 {
		return "–"
	}
	return stat.Times(s)
}

// allocGoals decides T12: less than one object in a hundred operations is the
// harness's own.
func allocGoals(t *compare.Comparison, names ...string) []cli.Goal {
	goals := make([]cli.Goal, 0, len(names))
	for _, name := range names {
		goals = append(goals, cli.Goal{ID: "T12", What: name + ", allocations per operation",
			Value: t.Find(name).Allocs(), Target: 0.01, AtMost: true}.Decide(""))
	}
	return goals
}
