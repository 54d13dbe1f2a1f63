//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

// hmfOptions are the flags of the commands below hmf.
type hmfOptions struct {
	ring, packet, payload   int
	packages, perPackage    int
	batch                   int
	pairs, sizes, packetsOf []int
	verify, access, wait    string
	lazy                    bool
	plot, dat               string
	repeat, rounds          int
	peers                   []string
	builds                  []string // compiler settings of the ring in C
	// spoil is the packet in which the generator writes a wrong byte: tests
	// see that it is found. -1: none.
	spoil int
}

// hmfPresets are the ring sizes of the report, primes (H18).
var hmfPresets = map[string]int{"hackomat": 24989, "foxi": 49999, "dopamine": 74959}

// addHMF adds the command and the two that its child processes run.
func addHMF(root *cobra.Command, c *common) {
	root.AddCommand(newHMF(c), newHMFGenerate(), newHMFReceive())
}

func newHMF(c *common) *cobra.Command {
	o := hmfOptions{spoil: -1}
	cmd := &cobra.Command{
		Use:   "hmf",
		Short: "The HMF Transmitter's tests: packets from process to process through a ring",
		Long: `The tests of the HMF Transmitter report on this project's ring (docs/ring.md): a
starter makes a ring and starts a pair, a generator process that fills packets in
place and a receiver process that reads and checks them.

Times are of packages, by default of 1,000 packets; the generator measures, and the
time that measuring takes is taken out. The first package, which touches memory
that was never used, stands apart. Gross rates count whole packets, net rates the
payload. The report's figures were measured on another machine and stand in rows
of their own. No device takes part.`,
		Example: `  nfbench hmf one
  nfbench hmf multi --pairs 1,2 --output json
  nfbench hmf sweep --sizes 3,61,24989 --packets 4KiB,8KiB,64KiB --plot hmf.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	f := cmd.PersistentFlags()
	f.Var(ringSize{&o.ring}, "size", "packets of the ring: a number, hackomat (24989), foxi (49999) or dopamine (74959)")
	f.Var(units.Flag{N: &o.packet}, "packet", "bytes of a packet, a multiple of the page")
	f.Var(units.Flag{N: &o.payload}, "payload", "bytes of it that are filled and count as net")
	f.IntVar(&o.packages, "packages", 200, "packages measured, after the first")
	f.IntVar(&o.perPackage, "package", 1000, "packets of a package")
	f.IntVar(&o.batch, "batch", 1, "packets that are handed over and taken at once, copied; but not by peers in C")
	f.StringVar(&o.verify, "verify", "flag", "what the receiver checks: flag (the packet's number) or full (every byte)")
	f.StringVar(&o.access, "access", "place", "how the receiver reads: place or copy")
	f.StringVar(&o.wait, "wait", "adaptive", "how both wait: adaptive, spin, yield or park")
	f.BoolVar(&o.lazy, "lazy", false, "leave the ring's memory untouched before the first package")
	f.Var(output{&o.dat}, "dat", "write the rows to this file for gnuplot")
	f.Var(output{&o.plot}, "plot", "draw the rates to this SVG file")
	o.ring, o.packet, o.payload = hmfPresets["hackomat"], 8<<10, 7<<10
	for flag, values := range map[string][]string{
		"verify": {"flag", "full"}, "access": {"place", "copy"}, "wait": {"adaptive", "spin", "yield", "park"},
	} {
		// The flags are there: they were defined above.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.AddCommand(newHMFInit(c, &o), newHMFOne(c, &o), newHMFMulti(c, &o), newHMFSweep(c, &o))
	return cmd
}

// ringSize is the flag of a ring's size.
type ringSize struct{ n *int }

func (r ringSize) String() string {
	if r.n == nil {
		return ""
	}
	return strconv.Itoa(*r.n)
}
func (ringSize) Type() string { return "packets" }
func (r ringSize) Set(s string) error {
	n, ok := hmfPresets[strings.ToLower(s)]
	if !ok {
		var err error
		if n, err = strconv.Atoi(s); err != nil || n < ring.MinPackets {
			return fmt.Errorf("%q is no number of packets, at least %d, and none of hackomat, foxi, dopamine", s, ring.MinPackets)
		}
	}
	*r.n = n
	return nil
}

// check refuses flags that make no sense, before anything starts.
func (o *hmfOptions) check(c *common) error {
	switch {
	case c.check() != nil:
		return c.check()
	case o.packages < 1 || o.perPackage < 1:
		return usagef("--packages %d and --package %d must be at least 1", o.packages, o.perPackage)
	case o.batch < 1 || o.batch > 1000:
		return usagef("--batch %d is not 1 to 1000", o.batch)
	case !slices.Contains([]string{"flag", "full"}, o.verify):
		return usagef("--verify %q is neither flag nor full", o.verify)
	case !slices.Contains([]string{"place", "copy"}, o.access):
		return usagef("--access %q is neither place nor copy", o.access)
	case hmfWaitsUnknown(o.wait):
		return usagef("--wait %q is none of adaptive, spin, yield and park", o.wait)
	}
	return o.checkPacket(o.packet)
}

func hmfWaitsUnknown(name string) bool {
	_, known := hmfWaits[name]
	return !known
}

func (o *hmfOptions) checkPacket(packet int) error {
	if page := os.Getpagesize(); packet%page != 0 {
		return usagef("--packet %d is not a multiple of the page, %d bytes", packet, page)
	}
	if o.payload < 8 || o.payload > packet-64 {
		return usagef("--payload %d is not 8 to %d bytes, what a packet of %d carries", o.payload, packet-64, packet)
	}
	return nil
}

// HMFReport is what the tests measured.
type HMFReport struct {
	Command string   `json:"command"`
	Machine Machine  `json:"machine"`
	Label   string   `json:"label"`
	Rows    []HMFRow `json:"rows"`
	// VsMemcpy is the pair's net rate over that of one process's memcpy into as
	// much memory, round by round.
	VsMemcpy *Spread `json:"vs_memcpy,omitempty"`
	// NotMeasured names peers that were left out, and why.
	NotMeasured []string `json:"not_measured,omitempty"`
	Goals       []Goal   `json:"goals,omitempty"`
	// Paper are the report's rows, of another machine.
	Paper    []HMFRow  `json:"paper"`
	Findings []Finding `json:"findings,omitempty"`
}

// HMFRow is one test. Times are milliseconds per package.
type HMFRow struct {
	Name     string  `json:"name"`
	Pairs    int     `json:"pairs"`
	Ring     int     `json:"ring_packets"`
	Packet   int     `json:"packet_bytes"`
	Packages int     `json:"packages"`
	FirstMS  float64 `json:"first_ms,omitempty"`
	// FirstPacketUS is the time of the first packet, in which the sides meet.
	FirstPacketUS float64 `json:"first_packet_us,omitempty"`
	MS            Stat    `json:"ms"`
	GrossKiB      float64 `json:"gross_kib_s"`
	NetKiB        float64 `json:"net_kib_s"`
	// Verified counts the packets that the receivers checked.
	Verified uint64  `json:"verified,omitempty"`
	CPUS     float64 `json:"cpu_s,omitempty"`
	WallS    float64 `json:"wall_s,omitempty"`
}

func newHMFReport(command string) *HMFReport {
	return &HMFReport{Command: "hmf " + command, Machine: thisMachine(), Label: "measured between processes, no device"}
}

// job is what one pair does; one more package than is measured.
func (o *hmfOptions) job() hmfJob {
	return hmfJob{
		Payload: o.payload, Packages: o.packages + 1, Package: o.perPackage, Warm: !o.lazy, Batch: max(o.batch, 1),
		Full: o.verify == "full", Copy: o.access == "copy", Wait: o.wait, Spoil: o.spoil,
	}
}

// addRun adds what a pair did, but for its packages.
func (r *HMFRow) addRun(run hmfRun) {
	r.FirstMS = max(r.FirstMS, run.sent.First/1e6)
	r.FirstPacketUS = max(r.FirstPacketUS, run.sent.FirstPacket/1e3)
	r.Verified += run.got.Packets
	r.CPUS += float64(run.sent.CPU+run.got.CPU) / 1e9
	r.WallS = max(r.WallS, run.wall.Seconds())
}

// pairsAtOnce runs so many pairs at the same time, each on a ring of its own.
func (o *hmfOptions) pairsAtOnce(ctx context.Context, pairs, size, packet int, name string) (HMFRow, error) {
	row := HMFRow{Name: name, Pairs: pairs, Ring: size, Packet: packet, Packages: o.packages}
	type outcome struct {
		run hmfRun
		err error
	}
	var jobs []hmfJob
	for i := range pairs {
		job := o.job()
		job.Ring = fmt.Sprintf("hmf-%d-%d", os.Getpid(), i)
		r, err := ring.Create(job.Ring, ring.Config{Packets: size, PacketSize: packet, Prewarm: !o.lazy})
		if err != nil {
			return row, err
		}
		defer r.Close()
		jobs = append(jobs, job)
	}
	gate, err := newHMFGate(pairs)
	if err != nil {
		return row, err
	}
	ended := make(chan outcome, pairs) // one per pair
	for _, job := range jobs {
		go func() {
			run, err := runPair(ctx, job, gate)
			ended <- outcome{run, err}
		}()
	}
	gate.lift()
	var stats []Stat
	var failed error
	for range pairs {
		got := <-ended
		if got.err != nil {
			failed = got.err
			continue
		}
		stats = append(stats, got.run.sent.Stat)
		row.addRun(got.run)
	}
	row.setRates(o, merge(stats).scaled(1e-6))
	return row, failed
}

// merge is one Stat of several pairs: what they did together.
func merge(stats []Stat) Stat {
	var all Stat
	for i, s := range stats {
		if i == 0 {
			all = s
			continue
		}
		n := float64(all.N + s.N)
		all.Mean = (all.Mean*float64(all.N) + s.Mean*float64(s.N)) / n
		all.SD = max(all.SD, s.SD)
		all.P50, all.P99 = max(all.P50, s.P50), max(all.P99, s.P99)
		all.Min, all.Max = min(all.Min, s.Min), max(all.Max, s.Max)
		all.N += s.N
	}
	return all
}

// setRates fills in milliseconds per package, and the rates that follow from
// their mean.
func (r *HMFRow) setRates(o *hmfOptions, ms Stat) {
	r.MS = ms
	if ms.Mean > 0 {
		perSecond := float64(o.perPackage*r.Pairs) / ms.Mean * 1e3 / 1024
		r.GrossKiB = perSecond * float64(r.Packet)
		r.NetKiB = perSecond * float64(o.payload)
	}
}

func (r *HMFReport) table(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n\n", r.Label, r.Machine.text())
	t := texttable.Numbers("test", "pairs", "ring", "packet", "1st packet µs", "first ms", "min", "mean", "max", "sd", "gross KiB/s", "net KiB/s", "verified")
	for _, row := range r.Rows {
		row.add(t, "")
	}
	for _, row := range r.Paper {
		row.add(t, " (the report)")
	}
	t.Write(w)
	if s := r.VsMemcpy; s != nil {
		fmt.Fprintf(w, "\nnet over memcpy: %.2f (%.2f to %.2f)\n", s.Median, s.Min, s.Max)
	}
	for _, why := range r.NotMeasured {
		fmt.Fprintln(w, why)
	}
	if len(r.Goals) > 0 {
		fmt.Fprintln(w)
		writeGoals(w, r.Goals)
	}
	for i, v := range r.Findings {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", v.What, v.Result)
	}
}

func (r *HMFRow) add(t *texttable.Table, note string) {
	blank := func(format string, v float64) string {
		if v == 0 {
			return "–"
		}
		return fmt.Sprintf(format, v)
	}
	t.Add(r.Name+note, strconv.Itoa(r.Pairs), strconv.Itoa(r.Ring), sizeText(r.Packet), blank("%.1f", r.FirstPacketUS), blank("%.4f", r.FirstMS),
		fmt.Sprintf("%.4f", r.MS.Min), fmt.Sprintf("%.4f", r.MS.Mean), fmt.Sprintf("%.3f", r.MS.Max), fmt.Sprintf("%.4f", r.MS.SD),
		blank("%.0f", r.GrossKiB), blank("%.0f", r.NetKiB), blank("%.0f", float64(r.Verified)))
}

// finish writes the files that were asked for and prints the report.
func (r *HMFReport) finish(cmd *cobra.Command, c *common, o *hmfOptions) error {
	if o.dat != "" {
		if err := os.WriteFile(o.dat, []byte(r.gnuplot()), 0o644); err != nil {
			return usageError{fmt.Errorf("write data: %w", err)}
		}
	}
	if o.plot != "" {
		if err := r.draw().save(o.plot); err != nil {
			return err
		}
	}
	return c.print(cmd.OutOrStdout(), r)
}

// gnuplot writes the rows as the report's own data files do (H39).
func (r *HMFReport) gnuplot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# GNUplot data file\n# nfbench %s, %s\n# times in ms per package\n", r.Command, r.Machine.CPU)
	b.WriteString("# name\tpairs\tring\tpacket\tmin\tmax\tavg\tsd\tgross_KiB_s\tnet_KiB_s\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "%s\t%d\t%d\t%d\t%.7f\t%.7f\t%.7f\t%.7f\t%.0f\t%.0f\n", strings.ReplaceAll(row.Name, " ", "_"), row.Pairs, row.Ring,
			row.Packet, row.MS.Min, row.MS.Max, row.MS.Mean, row.MS.SD, row.GrossKiB, row.NetKiB)
	}
	return b.String()
}

// draw plots net rates over what the test changed: packet sizes if there are
// several, else ring sizes, one curve for each number of pairs.
func (r *HMFReport) draw() *plot {
	p := &plot{
		title: "nfbench " + r.Command, note: r.Label + ", " + r.Machine.CPU,
		yLabel: "GB/s net", xLabel: "packets of the ring",
	}
	x := func(row HMFRow) float64 { return float64(row.Ring) }
	if len(r.Rows) > 0 && slices.ContainsFunc(r.Rows, func(row HMFRow) bool { return row.Packet != r.Rows[0].Packet }) {
		p.xLabel, x = "bytes of a packet", func(row HMFRow) float64 { return float64(row.Packet) }
	}
	for _, row := range r.Rows {
		name := pairsText(row.Pairs)
		if r.VsMemcpy != nil { // the ring beside its peers
			name = row.Name
		}
		p.add(name, x(row), row.NetKiB*1024/1e9)
	}
	return p
}

// initTimes makes a ring, has two pairs use it one after the other, and gives it up.
// It returns how long making it took, and how long the second pair took to meet.
func initTimes(ctx context.Context, o *hmfOptions, size int) (made, again time.Duration, err error) {
	name := fmt.Sprintf("hmf-%d-init", os.Getpid())
	start := time.Now()
	r, err := ring.Create(name, ring.Config{Packets: size, PacketSize: o.packet, Prewarm: !o.lazy})
	made = time.Since(start)
	if err != nil {
		return 0, 0, err
	}
	for range 2 {
		if again, err = meet(ctx, r); err != nil {
			break
		}
	}
	return made, again, errors.Join(err, r.Close())
}

// meet attaches both sides of a ring, passes one packet and gives both roles up.
func meet(ctx context.Context, r *ring.Ring) (time.Duration, error) {
	start := time.Now()
	w, err := r.Writer(ctx)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	d, err := r.Reader(ctx)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if err := w.Commit(ctx, copy(w.Reserve(), "first")); err != nil {
		return 0, err
	}
	_, err = d.Peek(ctx)
	return time.Since(start), err
}
