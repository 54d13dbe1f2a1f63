//go:build linux

package report

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/groups"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// paperOptions are the flags of the command.
type paperOptions struct{ folder }

func addPaper(root *cobra.Command, c *cli.Flags) { root.AddCommand(newPaper(c)) }

func newPaper(c *cli.Flags) *cobra.Command {
	o := paperOptions{folder{all: paperIDs(), kind: "paper"}}
	cmd := &cobra.Command{
		Use:   "paper",
		Short: "Every table and figure of the five papers that can be had here",
		Long: `Regenerate the tables and figures of the five papers NFComms grew out of, and write
them to a folder: index.html, which needs nothing beside it, paper.md, and each
picture as SVG.

Each item has the paper's figure, which is that of another machine, what the paper's
own formula gives, and what was measured here; and says whether the shape is the
same. Shapes are compared, never rates: the device at --address is simulated unless
it is a real one. An item that cannot be had here says why.

Papers: bulk (the bulk-transfer paper), ring (the HMF Transmitter report), stack (the
stack analysis), link (the torus link), groups (the spike-exchange report).`,
		Example: `  nfbench paper --short --out report
  nfbench paper --out report --only ring,groups
  nfbench paper --out report --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return c.Measure(cmd, func(ctx context.Context, dev *nfcomms.Device) (cli.Report, error) {
				effort := paperWhole
				if o.short {
					effort = paperShort
				}
				r, err := o.regenerate(ctx, dev, effort, cmd.ErrOrStderr())
				if err != nil {
					return nil, err
				}
				return r, r.save(&o.folder)
			})
		},
	}
	o.flags(cmd, "fewer tests of each point, in less than three minutes")
	return cmd
}

// paperSource is a paper and how its items come about.
type paperSource struct {
	id, title string
	decisions []PaperDecision
	// steps is how often items calls its progress.
	steps int
	items func(ctx context.Context, m *paperMachine) ([]PaperItem, error)
}

func paperSources() []paperSource {
	return []paperSource{
		{"bulk", "NFComms bulk transfers: host and network flow processor", bulkDecisions, 2, bulkItems},
		{"ring", "HMF Transmitter: a circular buffer between processes", ringDecisions, 4, ringItems},
		{"stack", "Latencies of a communication stack: Java to FPGA", stackDecisions, 1, stackItems},
		{"link", "APEnet+: a 3-D torus without switches", linkDecisions, 0, linkItems},
		{"groups", "MUSIC: exchange of spikes between parallel applications", nil, 1, groupItems},
	}
}

func paperIDs() []string {
	var ids []string
	for _, s := range paperSources() {
		ids = append(ids, s.id)
	}
	return ids
}

// paperEffort is how much is measured of each item.
type paperEffort struct {
	batches         int // of messages
	payload, direct int // bytes each way, and messages
	tests           int // of each point of throughput
	rings           int // made of each size
	packages        int // of 1,000 packets, each pair
	rounds          int // of groups
	slice           time.Duration
	shrink          int   // the papers' sizes of rings and messages by so much; 1 but in tests
	cycles          int   // of a link, each flow control and depth
	chunks          []int // of the stack, beside those of the slides
	groups          groups.Options
}

var (
	paperChunks = []int{256 << 10, 1 << 20, 4 << 20}
	paperGroups = groups.Options{
		Members: []int{8, 16}, Targets: []int{4}, Bytes: []int{64, 64 << 10}, Transports: []string{groups.TransportMesh, groups.TransportShm},
		Algorithms: []string{group.Auto, "isend", "send", "send-loop", "isend-irecv", "ssend", "allgather"},
	}

	paperShort = paperEffort{500, 40e6, 20000, 3, 3, 40, 3, 10 * time.Millisecond, 1, 60000, paperChunks, paperGroups}
	paperWhole = paperEffort{10000, 100e6, 100000, 15, 20, 200, 9, 50 * time.Millisecond, 1, 1_000_000, paperChunks, paperGroups}
)

// paperMachine is what items are measured on.
type paperMachine struct {
	paperEffort
	dev *nfcomms.Device
	bar cli.Progress
}

// regenerate makes the items of the papers that were asked for.
func (o *paperOptions) regenerate(ctx context.Context, dev *nfcomms.Device, e paperEffort, errw io.Writer) (*PaperReport, error) {
	r := &PaperReport{Header: cli.NewHeader("paper", dev), Short: o.short}
	var wanted []paperSource
	steps := 0
	for _, s := range paperSources() {
		if slices.Contains(o.only, s.id) {
			wanted = append(wanted, s)
			steps += s.steps
		}
	}
	m := &paperMachine{paperEffort: e, dev: dev, bar: cli.NewProgress(errw, steps, "paper")}
	defer m.bar.Done()
	for _, s := range wanted {
		items, err := s.items(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.id, err)
		}
		r.Papers = append(r.Papers, Paper{ID: s.id, Title: s.title, Items: items, Decisions: s.decisions})
	}
	return r, nil
}

// PaperReport is what the command writes.
type PaperReport struct {
	cli.Header
	// Short means that there were fewer tests of each point.
	Short  bool    `json:"short"`
	Papers []Paper `json:"papers"`
}

// Paper is one of the five.
type Paper struct {
	ID    string      `json:"id"`
	Title string      `json:"title"`
	Items []PaperItem `json:"items"`
	// Decisions are what the paper says in two ways, and which we took.
	Decisions []PaperDecision `json:"decisions,omitempty"`
}

// PaperDecision is a contradiction in a paper and how it was decided.
type PaperDecision struct {
	Says    string `json:"says"`
	Decided string `json:"decided"`
}

// PaperItem is a table or figure.
type PaperItem struct {
	// Ref is its number in the paper, or the row of the project's list.
	Ref   string `json:"ref"`
	Title string `json:"title"`
	// Label is what the measured column is; empty where there is none.
	Label string     `json:"label,omitempty"`
	Rows  []PaperRow `json:"rows,omitempty"`
	// Findings are the shapes.
	Findings []PaperFinding `json:"findings,omitempty"`
	// Absent is why it is not here.
	Absent string `json:"absent,omitempty"`
	// Picture is the name of the file.
	Picture string `json:"picture,omitempty"`

	plot *plot.Plot
}

// PaperRow is a figure of an item, three ways; what is nil does not exist.
type PaperRow struct {
	What     string   `json:"what"`
	Unit     string   `json:"unit,omitempty"`
	Paper    *float64 `json:"paper"`
	Model    *float64 `json:"model"`
	Measured *float64 `json:"measured"`
	// Step is that of the paper's last digit, where a formula is held against it; 0 elsewhere.
	Step float64 `json:"step,omitempty"`
	Note string  `json:"note,omitempty"`
}

// PaperFinding is a shape that the paper has.
type PaperFinding struct {
	What   string `json:"what"`
	Result string `json:"result"`
	Why    string `json:"why,omitempty"`
}

// number makes a figure that exists.
func number(v float64) *float64 { return &v }

// shape reports whether a shape shows here, with the figure that decides.
func shape(what string, holds bool, format string, args ...any) PaperFinding {
	result := cli.ShapeSame
	if !holds {
		result = cli.ShapeDiffers
	}
	return PaperFinding{What: what, Result: result, Why: fmt.Sprintf(format, args...)}
}

// findings are those of another command.
func findings(of []cli.Finding) (all []PaperFinding) {
	for _, f := range of {
		all = append(all, PaperFinding{What: f.What, Result: f.Shape, Why: f.Why})
	}
	return all
}

// absent is an item that cannot be had here.
func absent(ref, title, why string) PaperItem {
	return PaperItem{Ref: ref, Title: title, Absent: why}
}

// trust replaces results by the reason why what was measured proves nothing.
func trust(item PaperItem, busy string) PaperItem {
	if busy == "" {
		return item
	}
	for i := range item.Findings {
		item.Findings[i].Result = cli.ShapeUnknown
		item.Findings[i].Why = strings.TrimPrefix(item.Findings[i].Why+"; "+busy, "; ")
	}
	return item
}

// Shapes sums the findings up.
func (i PaperItem) Shapes() string {
	if i.Absent != "" {
		return "not here"
	}
	count := make(map[string]int)
	for _, f := range i.Findings {
		count[f.Result]++
	}
	var parts []string
	for _, v := range []string{cli.ShapeSame, cli.ShapeRounded, cli.ShapeFitted, cli.ShapeDiffers, cli.ShapeOpen, cli.ShapeUnknown} {
		if n := count[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return strings.Join(parts, ", ")
}

// Table writes a line for each item.
func (r *PaperReport) Table(w io.Writer) {
	r.Header.Table(w)
	t := &texttable.Table{Columns: []texttable.Column{{Title: "paper"}, {Title: "item"}, {Title: "shapes"}}}
	for _, p := range r.Papers {
		for _, i := range p.Items {
			t.Add(p.ID, i.Ref, i.Shapes())
		}
	}
	t.Write(w)
}
