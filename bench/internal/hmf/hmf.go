//go:build linux

package hmf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/ring"
)

// Options are the flags of the commands below hmf.
type Options struct {
	Ring, Packet, Payload   int
	Packages, PerPackage    int
	batch                   int
	pairs, sizes, packetsOf []int
	Verify, Access, Wait    string
	lazy                    bool
	plot, dat               string
	repeat, rounds          int
	peers                   []string
	builds                  []string // compiler settings of the ring in C
	// spoil is the packet in which the generator writes a wrong byte: tests
	// see that it is found. -1: none.
	Spoil int
}

// Presets are the ring sizes of the report, primes.
var Presets = map[string]int{"hackomat": 24989, "foxi": 49999, "dopamine": 74959}

// Add adds the command and the two that its child processes run.
func Add(root *cobra.Command, c *cli.Flags) {
	root.AddCommand(newHMF(c), newHMFGenerate(), newHMFReceive())
}

func newHMF(c *cli.Flags) *cobra.Command {
	o := Options{Spoil: -1}
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
	f.Var(ringSize{&o.Ring}, "size", "packets of the ring: a number, hackomat (24989), foxi (49999) or dopamine (74959)")
	f.Var(units.Flag{N: &o.Packet}, "packet", "bytes of a packet, a multiple of the page")
	f.Var(units.Flag{N: &o.Payload}, "payload", "bytes of it that are filled and count as net")
	f.IntVar(&o.Packages, "packages", 200, "packages measured, after the first")
	f.IntVar(&o.PerPackage, "package", 1000, "packets of a package")
	f.IntVar(&o.batch, "batch", 1, "packets that are handed over and taken at once, copied; but not by peers in C")
	f.StringVar(&o.Verify, "verify", "flag", "what the receiver checks: flag (the packet's number) or full (every byte)")
	f.StringVar(&o.Access, "access", "place", "how the receiver reads: place or copy")
	f.StringVar(&o.Wait, "wait", "adaptive", "how both wait: adaptive, spin, yield or park")
	f.BoolVar(&o.lazy, "lazy", false, "leave the ring's memory untouched before the first package")
	f.Var(plot.Output(&o.dat), "dat", "write the rows to this file for gnuplot")
	f.Var(plot.Output(&o.plot), "plot", "draw the rates to this SVG file")
	o.Ring, o.Packet, o.Payload = Presets["hackomat"], 8<<10, 7<<10
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
	n, ok := Presets[strings.ToLower(s)]
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
func (o *Options) check(c *cli.Flags) error {
	switch {
	case c.Check() != nil:
		return c.Check()
	case o.Packages < 1 || o.PerPackage < 1:
		return cli.Usagef("--packages %d and --package %d must be at least 1", o.Packages, o.PerPackage)
	case o.batch < 1 || o.batch > 1000:
		return cli.Usagef("--batch %d is not 1 to 1000", o.batch)
	case !slices.Contains([]string{"flag", "full"}, o.Verify):
		return cli.Usagef("--verify %q is neither flag nor full", o.Verify)
	case !slices.Contains([]string{"place", "copy"}, o.Access):
		return cli.Usagef("--access %q is neither place nor copy", o.Access)
	case hmfWaitsUnknown(o.Wait):
		return cli.Usagef("--wait %q is none of adaptive, spin, yield and park", o.Wait)
	}
	return o.checkPacket(o.Packet)
}

func hmfWaitsUnknown(name string) bool {
	_, known := hmfWaits[name]
	return !known
}

func (o *Options) checkPacket(packet int) error {
	if page := os.Getpagesize(); packet%page != 0 {
		return cli.Usagef("--packet %d is not a multiple of the page, %d bytes", packet, page)
	}
	if o.Payload < 8 || o.Payload > packet-64 {
		return cli.Usagef("--payload %d is not 8 to %d bytes, what a packet of %d carries", o.Payload, packet-64, packet)
	}
	return nil
}

// Report is what the tests measured.
type Report struct {
	Command string      `json:"command"`
	Machine cli.Machine `json:"machine"`
	Label   string      `json:"label"`
	Rows    []Row       `json:"rows"`
	// VsMemcpy is the pair's net rate over that of one process's memcpy into as
	// much memory, round by round.
	VsMemcpy *stat.Spread `json:"vs_memcpy,omitempty"`
	// NotMeasured names peers that were left out, and why.
	NotMeasured []string   `json:"not_measured,omitempty"`
	Goals       []cli.Goal `json:"goals,omitempty"`
	// Paper are the report's rows, of another machine.
	Paper    []Row         `json:"paper"`
	Findings []cli.Finding `json:"findings,omitempty"`
}

// Row is one test. Times are milliseconds per package.
type Row struct {
	Name     string  `json:"name"`
	Pairs    int     `json:"pairs"`
	Ring     int     `json:"ring_packets"`
	Packet   int     `json:"packet_bytes"`
	Packages int     `json:"packages"`
	FirstMS  float64 `json:"first_ms,omitempty"`
	// FirstPacketUS is the time of the first packet, in which the sides meet.
	FirstPacketUS float64 `json:"first_packet_us,omitempty"`
	// MS is of the packages of all pairs; its percentiles are those of the slowest pair.
	MS       stat.Stat `json:"ms"`
	GrossKiB float64   `json:"gross_kib_s"`
	NetKiB   float64   `json:"net_kib_s"`
	// Verified counts the packets that the receivers checked.
	Verified uint64  `json:"verified,omitempty"`
	CPUS     float64 `json:"cpu_s,omitempty"`
	WallS    float64 `json:"wall_s,omitempty"`
}

func newHMFReport(command string) *Report {
	return &Report{Command: "hmf " + command, Machine: cli.ThisMachine(), Label: "measured between processes, no device"}
}

// job is what one pair does; one more package than is measured.
func (o *Options) job() hmfJob {
	return hmfJob{
		Payload: o.Payload, Packages: o.Packages + 1, Package: o.PerPackage, Warm: !o.lazy, Batch: max(o.batch, 1),
		Full: o.Verify == "full", Copy: o.Access == "copy", Wait: o.Wait, Spoil: o.Spoil,
	}
}

// addRun adds what a pair did, but for its packages.
func (r *Row) addRun(run hmfRun) {
	r.FirstMS = max(r.FirstMS, run.sent.First/1e6)
	r.FirstPacketUS = max(r.FirstPacketUS, run.sent.FirstPacket/1e3)
	r.Verified += run.got.Packets
	r.CPUS += float64(run.sent.CPU+run.got.CPU) / 1e9
	r.WallS = max(r.WallS, run.wall.Seconds())
}

// PairsAtOnce runs so many pairs at the same time, each on a ring of its own.
func (o *Options) PairsAtOnce(ctx context.Context, pairs, size, packet int, name string) (Row, error) {
	row := Row{Name: name, Pairs: pairs, Ring: size, Packet: packet, Packages: o.Packages}
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
	var stats []stat.Stat
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
	row.setRates(o, merge(stats).Scaled(1e-6))
	return row, failed
}

// merge is one Stat of several pairs: mean and deviation are those of all their packages, the
// percentiles those of the slowest pair.
func merge(stats []stat.Stat) stat.Stat {
	var all stat.Stat
	var sum, squares float64
	for i, s := range stats {
		if i == 0 {
			all = s
		}
		all.P50, all.P99 = max(all.P50, s.P50), max(all.P99, s.P99)
		all.Min, all.Max = min(all.Min, s.Min), max(all.Max, s.Max)
		sum += s.Mean * float64(s.N)
	}
	all.N = 0
	for _, s := range stats {
		all.N += s.N
	}
	if all.N == 0 {
		return all
	}
	all.Mean = sum / float64(all.N)
	for _, s := range stats {
		off := s.Mean - all.Mean
		squares += s.SD*s.SD*float64(s.N-1) + off*off*float64(s.N)
	}
	if all.SD = 0; all.N > 1 {
		all.SD = math.Sqrt(squares / float64(all.N-1))
	}
	return all
}

// setRates fills in milliseconds per package, and the rates that follow from
// their mean.
func (r *Row) setRates(o *Options, ms stat.Stat) {
	r.MS = ms
	if ms.Mean > 0 {
		perSecond := float64(o.PerPackage*r.Pairs) / ms.Mean * 1e3 / 1024
		r.GrossKiB = perSecond * float64(r.Packet)
		r.NetKiB = perSecond * float64(o.Payload)
	}
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n\n", r.Label, r.Machine.Text())
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
		cli.WriteGoals(w, r.Goals)
	}
	for i, v := range r.Findings {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", v.What, v.Result)
	}
}

// add adds what was measured.
func (r *Row) add(t *texttable.Table, note string) {
	blank := func(format string, v float64) string {
		if v == 0 {
			return "–"
		}
		return fmt.Sprintf(format, v)
	}
	t.Add(r.Name+note, strconv.Itoa(r.Pairs), strconv.Itoa(r.Ring), cli.SizeText(r.Packet), blank("%.1f", r.FirstPacketUS), blank("%.4f", r.FirstMS),
		fmt.Sprintf("%.4f", r.MS.Min), fmt.Sprintf("%.4f", r.MS.Mean), fmt.Sprintf("%.3f", r.MS.Max), fmt.Sprintf("%.4f", r.MS.SD),
		blank("%.0f", r.GrossKiB), blank("%.0f", r.NetKiB), blank("%.0f", float64(r.Verified)))
}

// finish writes the files that were asked for and prints the report.
func (r *Report) finish(cmd *cobra.Command, c *cli.Flags, o *Options) error {
	if o.dat != "" {
		if err := os.WriteFile(o.dat, []byte(r.gnuplot()), 0o644); err != nil {
			return cli.UsageError{Err: fmt.Errorf("write data: %w", err)}
		}
	}
	if o.plot != "" {
		if err := r.draw().Save(o.plot); err != nil {
			return err
		}
	}
	return c.Print(cmd.OutOrStdout(), r)
}

// gnuplot writes the rows as the report's own data files do.
func (r *Report) gnuplot() string {
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
func (r *Report) draw() *plot.Plot {
	p := &plot.Plot{
		Title: "nfbench " + r.Command, Note: r.Label + ", " + r.Machine.CPU,
		YLabel: "GB/s net", XLabel: "packets of the ring",
	}
	x := func(row Row) float64 { return float64(row.Ring) }
	if len(r.Rows) > 0 && slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Packet != r.Rows[0].Packet }) {
		p.XLabel, x = "bytes of a packet", func(row Row) float64 { return float64(row.Packet) }
	}
	for _, row := range r.Rows {
		name := pairsText(row.Pairs)
		if r.VsMemcpy != nil { // the ring beside its peers
			name = row.Name
		}
		p.Add(name, x(row), row.NetKiB*1024/1e9)
	}
	return p
}

// InitTimes makes a ring, has two pairs use it one after the other, and gives it up.
// It returns how long making it took, and how long the second pair took to meet.
func InitTimes(ctx context.Context, o *Options, size int) (made, again time.Duration, err error) {
	name := fmt.Sprintf("hmf-%d-init", os.Getpid())
	start := time.Now()
	r, err := ring.Create(name, ring.Config{Packets: size, PacketSize: o.Packet, Prewarm: !o.lazy})
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
