package models

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
	"github.com/nfcomms/nfcomms/internal/model"
	"github.com/nfcomms/nfcomms/internal/texttable"
)

// Report is what "model" prints: nothing in it was measured.
type Report struct {
	Command string `json:"command"`
	// Label is what every figure is.
	Label   string          `json:"label"`
	Figures []papers.Figure `json:"figures"`
	Links   []Link          `json:"links,omitempty"`
	// Reader of Links: T_YEL of the classic flow control in words, and the cycles in which the host
	// takes a word.
	Reader
	// Reported are measurements that the report of the link prints and no formula gives.
	Reported []papers.Reported `json:"reported,omitempty"`
	// Skews are lanes of a link that are not of one length.
	Skews []papers.Skewed `json:"skews,omitempty"`
	// Tori are networks of as many nodes in three dimensions and in five.
	Tori []papers.Torus `json:"tori,omitempty"`
	// Memories are updates of the sketches in each type of device memory.
	Memories []Memory `json:"memories,omitempty"`
	// Transfers are those of a card by its capabilities.
	Transfers []Transfer `json:"transfers,omitempty"`
}

// Reader is the far end of the simulated links.
type Reader struct {
	Yellow    int `json:"yellow_words,omitempty"`
	ReadEvery int `json:"read_every_cycles,omitempty"`
}

// Link compares the flow controls of a link with a FIFO of Depth words:
// the formula, and the link simulated cycle by cycle.
type Link struct {
	Depth      int     `json:"depth_words"`
	Formula    float64 `json:"e3_formula"`
	Classic    float64 `json:"e3_classic_simulated"`
	Cumulative float64 `json:"e3_cumulative_simulated"`
}

// Memory is what eight updates cost in a type of memory, in cycles.
type Memory struct {
	model.Memory
	One   papers.Cycles `json:"one_context"`
	Eight papers.Cycles `json:"eight_contexts"`
}

// modelMemories simulates the updates in each type.
func modelMemories() (list []Memory) {
	for _, mem := range model.Memories {
		m := papers.PaperContexts.In(mem)
		one, _ := m.Simulate(8, 1) // a valid configuration has no error
		eight, _ := m.Simulate(8, 8)
		list = append(list, Memory{mem, one, eight})
	}
	return list
}

// tableOfMemories writes them.
func (r *Report) tableOfMemories(w io.Writer) {
	if len(r.Memories) == 0 {
		return
	}
	fmt.Fprintln(w, "\n8 updates by the type of memory; latencies but that of CLS are assumed")
	t := texttable.Numbers("memory", "cycles an access", "1 context", "asleep", "8 contexts", "asleep", "fewer")
	for _, m := range r.Memories {
		t.Add(m.Type, fmt.Sprintf("%d to %d", m.Least, m.Most), fmt.Sprint(m.One.Total()), fmt.Sprint(m.One.Sleep),
			fmt.Sprint(m.Eight.Total()), fmt.Sprint(m.Eight.Sleep), fmt.Sprintf("%.0f %%", 100*(1-float64(m.Eight.Total())/float64(m.One.Total()))))
	}
	t.Write(w)
}

// modelCycles makes the simulated efficiencies good to three digits.
const modelCycles = 1_000_000

func newModel(c *cli.Flags) *cobra.Command {
	var far Reader
	families := make([]string, 0, len(papers.Families()))
	for _, f := range papers.Families() {
		families = append(families, string(f))
	}
	cmd := &cobra.Command{
		Use:   "model [FAMILY…]",
		Short: "The papers' formulas beside the figures that they print",
		Long: `Evaluate the formulas of the papers at every point that a paper prints, and name
each formula. The last column says whether both are equal to the last printed digit,
equal from what the paper has rounded, different, or fitted: the model's constants were
chosen to give that figure. Families: link (the torus link), path (PCI Express), contexts (the
memory latency that hardware contexts hide), exchange (parallel members that
exchange events); all of them if none is given.

The family link also runs a link cycle by cycle, with the flow control of the
report and with credits that count what was consumed; --yellow is the FIFO's level at
which the former resumes, which matters where a word is read less often than one is sent
(--read-every); then no efficiency exceeds the reader's. It lists what the report measured, too. The family path also counts slots,
round trips and register reads of transfers to a card, by the capabilities of the device
ABI: registers take 0.8 µs to read, 64 lists may be on their way. The family contexts also has
the updates in each type of device memory.

Nothing is measured and no device is opened.`,
		Example: `  nfbench model
  nfbench model link --output json`,
		ValidArgs: families,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.Check(); err != nil {
				return err
			}
			for _, a := range args {
				if !slices.Contains(families, a) {
					return cli.Usagef("%q is no family of figures: link, path, contexts or exchange", a)
				}
			}
			r, err := modelReport(args, far)
			if err != nil {
				return err
			}
			return c.Print(cmd.OutOrStdout(), r)
		},
	}
	cmd.Flags().IntVar(&far.ReadEvery, "read-every", 1, "cycles in which the host takes a word from the far FIFO, 1 to 100")
	cmd.Flags().IntVar(&far.Yellow, "yellow", 0, "T_YEL: words in the far FIFO at which a stopped sender resumes, 0 to 3584; a FIFO that is too small for it takes what it can")
	return cmd
}

// modelReport evaluates the named families, all if there is none.
func modelReport(families []string, far Reader) (*Report, error) {
	most := linkDepths[len(linkDepths)-1] - 2*papers.PacketWords
	switch {
	case far.Yellow < 0 || far.Yellow > most:
		return nil, cli.Usagef("--yellow %d is not 0 to %d words", far.Yellow, most)
	case far.ReadEvery < 1 || far.ReadEvery > 100:
		return nil, cli.Usagef("--read-every %d is not 1 to 100 cycles", far.ReadEvery)
	}
	wanted := func(f papers.Family) bool {
		return len(families) == 0 || slices.Contains(families, string(f))
	}
	r := &Report{Command: "model", Label: "modelled"}
	for _, f := range papers.Catalogue() {
		if wanted(f.Family) {
			r.Figures = append(r.Figures, f)
		}
	}
	if wanted(papers.FamilyPath) {
		r.Transfers = modelTransfers()
	}
	if wanted(papers.FamilyContexts) {
		r.Memories = modelMemories()
	}
	if wanted(papers.FamilyExchange) {
		r.Tori = []papers.Torus{papers.TorusOf(8, 8, 16), papers.TorusOf(4, 4, 4, 4, 4), papers.TorusOf(32, 32, 32), papers.TorusOf(8, 8, 8, 8, 8)}
	}
	if wanted(papers.FamilyLink) {
		r.Reader, r.Reported = far, papers.ReportedFigures()
		for _, depth := range linkDepths {
			r.Links = append(r.Links, modelLink(depth, far))
		}
		for _, symbols := range []int{0, 1, papers.DeskewDepth - 1, papers.DeskewDepth} {
			r.Skews = append(r.Skews, papers.SimulateSkew(symbols))
		}
	}
	return r, nil
}

// linkDepths are the FIFOs of the report, in words.
var linkDepths = []int{512, 1024, 2048, 4096}

func modelLink(depth int, far Reader) Link {
	l := Link{
		Depth:   depth,
		Formula: min(papers.FlowEfficiency(depth, papers.PaperFlight.Wait(papers.CreditPeriod)), 1/float64(far.ReadEvery)),
	}
	for flow, to := range map[papers.FlowControl]*float64{papers.Classic: &l.Classic, papers.Cumulative: &l.Cumulative} {
		r, err := papers.SimulateLink(papers.LinkConfig{
			Flow: flow, Depth: depth, Period: papers.CreditPeriod, Flight: papers.PaperFlight,
			Yellow: min(far.Yellow, depth-2*papers.PacketWords), ReadEvery: far.ReadEvery, Cycles: modelCycles,
		})
		if err != nil {
			panic(err) // these depths are valid
		}
		*to = r.Efficiency
	}
	return l
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	fmt.Fprintln(w, "nothing was measured here: every figure is a paper's, its formula's or simulated")
	for _, family := range papers.Families() {
		t := texttable.Numbers(string(family), "formula", "published", "model", "unit", "")
		for _, f := range r.Figures {
			if f.Family == family {
				t.Add(f.Row+" "+f.What, f.Formula, modelFigure(f.Published, f.Step), modelFigure(f.Model, f.Step), f.Unit, string(f.Agreement))
			}
		}
		if len(t.Rows) > 0 {
			fmt.Fprintln(w)
			t.Write(w)
		}
	}
	if len(r.Transfers) > 0 {
		fmt.Fprintln(w)
		writeTransfers(w, r.Transfers)
	}
	r.tableOfMemories(w)
	r.tableOfTori(w)
	if len(r.Links) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := texttable.Numbers("E3 by FIFO depth", "formula", "classic, simulated", "cumulative, simulated")
	for _, l := range r.Links {
		t.Add(fmt.Sprintf("%d words", l.Depth), fmt.Sprintf("%.3f", l.Formula), fmt.Sprintf("%.3f", l.Classic), fmt.Sprintf("%.3f", l.Cumulative))
	}
	t.Write(w)
	fmt.Fprintln(w)
	t = texttable.Numbers("a lane late by", "whole words", "of", "lanes that overflowed")
	for _, s := range r.Skews {
		t.Add(fmt.Sprintf("%d symbols", s.Symbols), fmt.Sprint(s.Words), fmt.Sprint(s.Sent), fmt.Sprint(s.Overflows))
	}
	t.Write(w)
	fmt.Fprintln(w)
	t = texttable.Numbers("measured by the report, on its card; no formula gives it", "", "unit")
	for _, f := range r.Reported {
		t.Add(f.Row+" "+f.What, f.Text(), f.Unit)
	}
	t.Write(w)
}

// tableOfTori writes what a packet to any other node takes.
func (r *Report) tableOfTori(w io.Writer) {
	if len(r.Tori) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := texttable.Numbers("torus", "dimensions", "nodes", "mean hops", "most", "links between halves")
	for _, torus := range r.Tori {
		name := strings.ReplaceAll(strings.Trim(fmt.Sprint(torus.Sides), "[]"), " ", "x")
		t.Add(name, fmt.Sprint(len(torus.Sides)), fmt.Sprint(torus.Nodes), fmt.Sprintf("%.2f", torus.MeanHops), fmt.Sprint(torus.MostHops), fmt.Sprint(torus.Bisection))
	}
	t.Write(w)
}

// modelFigure writes v with as many decimals as the paper prints.
func modelFigure(v, step float64) string {
	return strconv.FormatFloat(v, 'f', max(0, int(math.Ceil(-math.Log10(step)))), 64)
}

// Add adds the command.
func Add(root *cobra.Command, c *cli.Flags) { root.AddCommand(newModel(c)) }
