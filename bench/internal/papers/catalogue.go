package papers

import (
	"fmt"
	"math"

	"github.com/nfcomms/nfcomms/internal/model"
)

// Family groups the figures of [Catalogue] by the paper they come from.
type Family string

// The families.
const (
	FamilyLink     Family = "link"     // the APEnet+ report
	FamilyPath     Family = "path"     // the stack analysis, PCI Express
	FamilyContexts Family = "contexts" // the bulk-transfer paper
	FamilyExchange Family = "exchange" // the spike-exchange report
)

// Families lists them in the order of Catalogue.
func Families() []Family {
	return []Family{FamilyLink, FamilyPath, FamilyContexts, FamilyExchange}
}

// Figure is one published number beside what its formula gives.
type Figure struct {
	Family Family `json:"family"`
	// Row names the feature in the project's list, for example A22.
	Row     string `json:"row"`
	What    string `json:"what"`
	Formula string `json:"formula"`
	Unit    string `json:"unit,omitempty"`
	// Published is the paper's number, printed in steps of Step, and Model the
	// formula's.
	Published float64 `json:"published"`
	Step      float64 `json:"step"`
	Model     float64 `json:"model"`
	// Rounded is the formula's number from inputs that the paper has rounded, and Rounding names
	// them; 0 and "" if the paper rounds none.
	Rounded  float64 `json:"rounded,omitempty"`
	Rounding string  `json:"rounding,omitempty"`
	// Fitted means that constants of the model were chosen so that it gives this figure.
	Fitted    bool      `json:"fitted,omitempty"`
	Agreement Agreement `json:"agreement"`
}

// Agreement is how a formula's number compares with the printed one.
type Agreement string

// The agreements. A fitted figure cannot differ, and shows nothing.
const (
	Equal          Agreement = "equal"           // to the last digit that is printed
	WithinRounding Agreement = "within rounding" // from the inputs that the paper has rounded
	Different      Agreement = "different"
	FittedTo       Agreement = "fitted"
)

// agreement compares the numbers of a figure.
func (f Figure) agreement() Agreement {
	const accuracy = 1e-9 // of the computation, in steps
	apart := func(v float64) float64 { return math.Abs(v-f.Published) / f.Step }
	switch {
	case f.Fitted && apart(f.Model) <= 0.5+accuracy:
		return FittedTo
	case apart(f.Model) <= 0.5+accuracy:
		return Equal
	case f.Rounding != "" && apart(f.Rounded) < 1: // rounded, or cut off
		return WithinRounding
	}
	return Different
}

// Catalogue evaluates every formula at every point that a paper prints.
func Catalogue() []Figure {
	var all []Figure
	for _, part := range [][]Figure{linkFigures(), pathFigures(), contextFigures(), exchangeFigures()} {
		all = append(all, part...)
	}
	return all
}

func linkFigures() []Figure {
	f := []Figure{
		{Row: "A17", What: "E1, 4 KiB packets", Formula: "S/(P+S)", Published: 0.985, Model: FrameEfficiency(PacketWords), Step: 0.001},
		{Row: "A18", What: "E2, a credit every 35 cycles", Formula: "C/(C+2)", Published: 0.946, Model: CreditEfficiency(CreditPeriod), Step: 0.001},
		{Row: "A21", What: "W", Formula: "data + credit + 2·local + C", Unit: "cycles", Published: 145, Model: float64(PaperFlight.Wait(CreditPeriod)), Step: 1},
	}
	for _, row := range []struct {
		depth            int
		e3, et, b28, b34 float64
	}{
		{512, .638, .595, 1666, 2023},
		{1024, .841, .784, 2195, 2665},
		{2048, .925, .862, 2414, 2931},
		{4096, .964, .898, 2514, 3060},
	} {
		at := fmt.Sprintf("FIFO of %d words", row.depth)
		// The report multiplies factors that it has rounded; its 3060 is 3,400 × 0.90, where 0.898
		// gives 3053.
		factors, by34, rounding := thousandth(FrameEfficiency(PacketWords))*thousandth(CreditEfficiency(CreditPeriod))*row.e3, row.et, "of E_T"
		if row.depth == 4096 {
			by34, rounding = 0.90, "of E_T to 0.90; 0.898 gives 3053"
		}
		f = append(f,
			Figure{Row: "A22", What: "E3, " + at, Formula: "n·S/(n·S+W), n = ⌊depth/S⌋−1", Published: row.e3, Model: FlowEfficiency(row.depth, PaperFlight.Wait(CreditPeriod)), Step: 0.001},
			Figure{Row: "A23", What: "E_T, " + at, Formula: "E1·E2·E3", Published: row.et, Model: LinkEfficiency(row.depth), Step: 0.001, Rounded: factors, Rounding: "of E1, E2 and E3"},
			Figure{Row: "A23", What: "28 Gb/s, " + at, Formula: "rate·8/10·E_T", Unit: "MB/s", Published: row.b28, Model: LinkBandwidth(28, row.depth, 0) / 1e6, Step: 1, Rounded: Code8b10b.Rate(28) * row.et / 1e6, Rounding: "of E_T"},
			Figure{Row: "A23", What: "34 Gb/s, " + at, Formula: "rate·8/10·E_T", Unit: "MB/s", Published: row.b34, Model: LinkBandwidth(34, row.depth, 0) / 1e6, Step: 1, Rounded: Code8b10b.Rate(34) * by34 / 1e6, Rounding: rounding},
		)
	}
	return family(FamilyLink, append(f, generationFigures()...))
}

// thousandth rounds as the report prints its factors.
func thousandth(v float64) float64 { return math.Round(1000*v) / 1000 }

func pathFigures() []Figure {
	return family(FamilyPath, []Figure{
		{Row: "F7", What: "256 B in a packet with a header of 4 words and without ECRC, 24 B (3 words and ECRC are 24 B, too)", Formula: "payload/(payload+overhead)", Published: 0.914, Model: TLP{HeaderDW: 4}.Efficiency(256), Step: 0.001},
		{Row: "F3", What: "PCI Express 2.0, 2 lanes", Formula: "5 GT/s·lanes·8/10", Unit: "MB/s", Published: 1000, Model: Lanes{2, 2}.Rate() / 1e6, Step: 1},
		{Row: "N14", What: "a message of 56 B in a packet of 4 KiB", Formula: "56/4096", Unit: "%", Published: 1.4, Model: 100 * DirectShare(56), Step: 0.1},
	})
}

func contextFigures() []Figure {
	one, _ := PaperContexts.Simulate(8, 1) // a valid configuration has no error
	eight, _ := PaperContexts.Simulate(8, 8)
	each := float64(eight.Total()) / 8
	return family(FamilyContexts, []Figure{
		{Row: "N55", What: "8 updates on 1 context", Formula: "simulated", Unit: "cycles", Published: 1129, Model: float64(one.Total()), Step: 1},
		{Row: "N55", What: "… of which computing", Formula: "simulated", Unit: "cycles", Published: 526, Model: float64(one.Compute), Step: 1, Fitted: true},
		{Row: "N55", What: "8 updates on 8 contexts", Formula: "simulated", Unit: "cycles", Published: 616, Model: float64(eight.Total()), Step: 1},
		{Row: "N55", What: "… computing more than on 1", Formula: "simulated", Unit: "cycles", Published: 48, Model: float64(eight.Compute - one.Compute), Step: 1, Fitted: true},
		{Row: "N55", What: "… of which asleep", Formula: "simulated", Unit: "cycles", Published: 42, Model: float64(eight.Sleep), Step: 1},
		{Row: "N55", What: "… fewer than on 1", Formula: "1−cycles/cycles", Unit: "%", Published: 45, Model: 100 * (1 - float64(eight.Total())/float64(one.Total())), Step: 1},
		{Row: "N55", What: "an update, 8 contexts", Formula: "cycles/8", Unit: "cycles", Published: 77, Model: each, Step: 1},
		{Row: "N55", What: "an update at 600 MHz", Formula: "cycles/8/f", Unit: "ns", Published: 128, Model: each / 0.6, Step: 1},
	})
}

// The benchmark network of the spike-exchange report.
const (
	networkCells = 2 << 20
	synapses     = 1000
	spikeRate    = 30 * 16 // bytes a second: 30 Hz, events of 16 bytes
)

func exchangeFigures() []Figure {
	f := []Figure{{
		Row: "M21", What: "volume of a step of 1 ms", Formula: "N·2·F/1000·A·S", Unit: "MiB", Published: 1.92,
		Model: StepBytes(networkCells, 2, 30, 1, 16) / (1 << 20), Step: 0.001,
	}}
	ratio := []float64{23559.07, 5225.05, 1173.62, 266.34, 60.96, 14.05, 3.26, 0.76}
	certain := []float64{1, 1, 1, 1, 1, 1, 0.9999999998, 0.00132}
	steps := []float64{1e-10, 1e-10, 1e-10, 1e-10, 1e-10, 1e-10, 1e-10, 1e-5}
	received := []float64{983040, 983040, 983040, 960000, 480000, 240000, 120000}
	for i, members := 0, 128; members <= 16<<10; i, members = i+1, 2*members {
		draws := float64(networkCells/members) * synapses
		at := fmt.Sprintf("%d members", members)
		f = append(f,
			Figure{Row: "M29", What: "T/E, " + at, Formula: "T/(L·ln L + γL + ½)", Published: ratio[i], Model: draws / CouponDraws(members), Step: 0.01},
			Figure{Row: "M29", What: "P, " + at, Formula: "Π(1−(1−Ni/N)^T)", Published: certain[i], Model: Coverage(networkCells, members, draws), Step: steps[i]},
		)
		if i < len(received) {
			f = append(f,
				Figure{Row: "M30", What: "received, " + at, Formula: "F·L·min(T·Ni/N, Ni)", Unit: "KiB/s", Published: received[i], Model: model.ExchangedBytes(networkCells, members, synapses, spikeRate) / 1024, Step: 1},
				Figure{Row: "M30", What: "produced, " + at, Formula: "Ni·F", Unit: "KiB/s", Published: 7680 / float64(int(1)<<i), Model: model.ProducedBytes(networkCells, members, spikeRate) / 1024, Step: 1},
			)
		}
	}
	return family(FamilyExchange, f)
}

func family(name Family, f []Figure) []Figure {
	for i := range f {
		f[i].Family, f[i].Agreement = name, f[i].agreement()
	}
	return f
}
