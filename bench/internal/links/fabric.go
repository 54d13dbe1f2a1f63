package links

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/topology"
)

// label names the kind of what links and fabrics are measured on.
const label = "simulated nodes of this process, no hardware"

// FabricReport is what "fabric" prints. Packets are the mesh's own, and those of puts and gets.
type FabricReport struct {
	Command string       `json:"command"`
	Machine cli.Machine  `json:"machine"`
	Label   string       `json:"label"`
	Torus   string       `json:"torus"`
	Threads int          `json:"threads"`
	Hops    []FabricHops `json:"hops"`
	Sizes   []FabricSize `json:"sizes"`
	All     FabricAll    `json:"all_to_all"`
	Cut     FabricCut    `json:"cut"`
	// Access are puts and gets, Lookups what they take at the window.
	Access  []FabricAccess `json:"access"`
	Lookups []FabricLookup `json:"lookups"`
	// IdleShare of a core that the nodes take with nothing to do.
	IdleShare float64 `json:"idle_share_of_core"`
}

// FabricHops is half of a ping-pong of 56 bytes over so many hops.
type FabricHops struct {
	Hops  int     `json:"hops"`
	P50Ns float64 `json:"p50_ns"`
	P99Ns float64 `json:"p99_ns"`
	// P9999Ns shows jitter; it needs 10,000 pings to mean something.
	P9999Ns float64 `json:"p99_99_ns"`
}

// FabricSize is what one node sends to a neighbour, by size of packets.
type FabricSize struct {
	Size          int     `json:"bytes"`
	MBs           float64 `json:"mb_s"`
	PacketsPerSec float64 `json:"packets_per_s"`
}

// FabricAll is every node sending to every other.
type FabricAll struct {
	Packets uint64  `json:"packets"`
	Seconds float64 `json:"seconds"`
	MBs     float64 `json:"mb_s"`
	// Blocked is the mean time that first packets of inputs waited, for each
	// packet that a router passed on.
	BlockedNs float64 `json:"blocked_ns_per_forward"`
}

// FabricCut is a link cut while its two nodes send to each other.
type FabricCut struct {
	// ReroutedMs until the way led around it, and MendedMs until it led over it
	// again.
	ReroutedMs float64 `json:"rerouted_ms"`
	MendedMs   float64 `json:"mended_ms"`
	Sent       uint64  `json:"sent"`
	Came       uint64  `json:"came"`
	Lost       uint64  `json:"lost_with_the_link"`
	Changed    uint64  `json:"changed"`
	Doubled    uint64  `json:"doubled"`
	Before     string  `json:"map_before"`
	During     string  `json:"map_during"`
}

type fabricOptions struct {
	torus   string
	threads int
	pings   int
	time    time.Duration
	errors  float64
	plot    string

	sides topology.Torus
}

func newFabric(c *cli.Flags) *cobra.Command {
	o := fabricOptions{}
	cmd := &cobra.Command{
		Use:   "fabric",
		Short: "Nodes of a torus in this process: hops, bandwidth, all to all, a cut link",
		Long: `Run the nodes of a torus on threads of this process and measure packets through
their links and routers: half of a ping-pong by hops, bandwidth by size to a neighbour,
every node to every other, puts to and gets from a neighbour's memory and how its pages
are found, the processor when idle, and a link that is cut and mended under load, with
the map before and meanwhile. Packets are the measurement's own: "nfbench latency --node"
measures channels to targets on other nodes.

Half round trips, puts and gets are in µs, finding a page in ns, bandwidths in MB/s (10^6
bytes of payload a second), the processor when idle in percent of a core; JSON has the
unit in each name.`,
		Example: `  nfbench fabric --torus 4x4x1 --plot fabric.svg
  nfbench fabric --torus 2x2x2 --errors 1e-4 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Check(); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			r, err := o.Run(cmd.Context())
			if err != nil {
				return err
			}
			return c.Print(cmd.OutOrStdout(), r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.torus, "torus", "4x4x1", "nodes in x, y and z, 2 to 64 in all")
	f.IntVar(&o.threads, "threads", 0, "threads that the nodes run on, 1 to 64; 0, the default: one for each processor")
	f.IntVar(&o.pings, "pings", 10000, "pings of 56 bytes for each number of hops, 1 to 10000000")
	f.DurationVar(&o.time, "time", 300*time.Millisecond, "time of each run of packets, 1ms to 1m")
	f.Float64Var(&o.errors, "errors", 0, "part of words of 16 bytes that each link flips, 0, the default, to 1e-3")
	f.Var(plot.Output(&o.plot), "plot", "write half round trips in µs by hops as SVG to this file; by default none")
	return cmd
}

func (o *fabricOptions) check() (err error) {
	o.sides, err = topology.ParseTorus(o.torus)
	switch {
	case err != nil:
		return cli.UsageError{Err: err}
	case o.sides.Nodes() > 64:
		return cli.Usagef("--torus %s has more than 64 nodes", o.torus)
	case o.threads < 0 || o.threads > 64:
		return cli.Usagef("--threads %d is not 0 to 64", o.threads)
	case o.pings < 1 || o.pings > 10_000_000:
		return cli.Usagef("--pings %d is not 1 to 10000000", o.pings)
	case o.time < time.Millisecond || o.time > time.Minute:
		return cli.Usagef("--time %v is not 1ms to 1m", o.time)
	case !(o.errors >= 0 && o.errors <= 1e-3):
		return cli.Usagef("--errors %g is not 0 to 1e-3", o.errors)
	}
	if o.threads == 0 {
		o.threads = min(runtime.NumCPU(), o.sides.Nodes())
	}
	return nil
}

// fabricSizes are of packets, in bytes.
var fabricSizes = []int{8, 56, 256, 1024, 2048, 4096}

func (o *fabricOptions) Run(ctx context.Context) (*FabricReport, error) {
	m, err := mesh.Open(mesh.Config{
		Side: [3]int{o.sides.X, o.sides.Y, o.sides.Z}, Threads: o.threads, Spin: 50 * time.Microsecond,
		Retry: patientRetry, Silence: patientSilence,
	})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	r := &FabricReport{Command: "fabric", Machine: cli.ThisMachine(), Label: label, Torus: o.torus, Threads: o.threads}
	b := &fabricBench{o: o, m: m}
	steps := []func(context.Context, *FabricReport) error{b.settle, b.idle, b.hops, b.sizes, b.all, b.access, b.lookups, b.cut}
	for _, step := range steps {
		if err := step(ctx, r); err != nil {
			return nil, err
		}
	}
	if o.plot != "" {
		if err := r.Plot().Save(o.plot); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Table writes the report for people.
func (r *FabricReport) Table(w io.Writer) {
	fmt.Fprintf(w, "%s\ntorus %s, %d threads; idle: %.2f %% of a core\n\n", r.Label, r.Torus, r.Threads, 100*r.IdleShare)
	t := texttable.Numbers("hops", "half round trip, p50", "p99", "p99.99")
	for _, h := range r.Hops {
		t.Add(fmt.Sprint(h.Hops), fmt.Sprintf("%.2f µs", h.P50Ns/1e3), fmt.Sprintf("%.2f µs", h.P99Ns/1e3), fmt.Sprintf("%.2f µs", h.P9999Ns/1e3))
	}
	t.Write(w)
	fmt.Fprintln(w)
	t = texttable.Numbers("packets of", "to a neighbour", "packets a second")
	for _, s := range r.Sizes {
		t.Add(cli.SizeText(s.Size), fmt.Sprintf("%.0f MB/s", s.MBs), fmt.Sprintf("%.0f", s.PacketsPerSec))
	}
	t.Write(w)
	fmt.Fprintf(w, "\nall to all: %d packets of 1 KiB in %.3f s, %.0f MB/s; first packets of inputs waited %.0f ns for each hop\n",
		r.All.Packets, r.All.Seconds, r.All.MBs, r.All.BlockedNs)
	r.accessTable(w)
	c := r.Cut
	fmt.Fprintf(w, "\na link cut under load: around it after %.1f ms, back after %.1f ms; %d packets sent, %d lost with the link, %d changed, %d doubled\n",
		c.ReroutedMs, c.MendedMs, c.Sent, c.Lost, c.Changed, c.Doubled)
	fmt.Fprintf(w, "\nbefore:\n%s\nmeanwhile:\n%s", c.Before, c.During)
}

// Plot draws what the report has.
func (r *FabricReport) Plot() *plot.Plot {
	p := &plot.Plot{
		Title: "Half round trip by hops", Note: fmt.Sprintf("56 bytes, %s, torus %s, %d threads", r.Label, r.Torus, r.Threads),
		XLabel: "hops", YLabel: "µs", Name: func(v float64) string { return fmt.Sprint(int(v)) },
	}
	p50, p99 := plot.Series{Name: "p50", Colour: plot.Palette[0]}, plot.Series{Name: "p99", Colour: plot.Palette[1]}
	for _, h := range r.Hops {
		p.XTicks = append(p.XTicks, float64(h.Hops))
		p50.X, p50.Y = append(p50.X, float64(h.Hops)), append(p50.Y, h.P50Ns/1e3)
		p99.X, p99.Y = append(p99.X, float64(h.Hops)), append(p99.Y, h.P99Ns/1e3)
	}
	p.Series = []plot.Series{p50, p99}
	return p
}
