package papers

import (
	"fmt"
	"math"
)

// Reported is one number that the APEnet+ report prints and no formula gives.
type Reported struct {
	Row   string  `json:"row"`
	What  string  `json:"what"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	// Bound: the report gives it as an upper bound.
	Bound bool `json:"bound,omitempty"`
}

// Cable is a link that the report tested: a direction, a length and a rate of a lane.
type Cable struct {
	Name, What string
	BitErrors  float64 // upper bound
}

// Cables are those of the report.
var Cables = []Cable{
	{"x+5m8.5", "X+, 5 m, 8.5 Gb/s", 7.04e-11},
	{"y+5m8.5", "Y+, 5 m, 8.5 Gb/s", 8.12e-11},
	{"z+5m8.5", "Z+, 5 m, 8.5 Gb/s", 7.04e-10},
	{"x+5m7", "X+, 5 m, 7 Gb/s", 9.80e-13},
	{"x+2m7", "X+, 2 m, 7 Gb/s", 2.46e-14},
}

// WordErrors returns the part of words of the link that have a bit in error, one at least.
func (c Cable) WordErrors() float64 { return -math.Expm1(8 * WordBytes * math.Log1p(-c.BitErrors)) }

// Text writes the value, as an upper bound where it is one.
func (r Reported) Text() string {
	if r.Bound {
		return fmt.Sprintf("< %.3g", r.Value)
	}
	return fmt.Sprintf("%g", r.Value)
}

// ReportedFigures are the report's measurements: latencies, bit error rates of
// cables and what each part of the card moves (A31, A33, A34, A35).
func ReportedFigures() []Reported {
	all := []Reported{
		{Row: "A6", What: "GPU to GPU, peer to peer, half of a ping-pong", Unit: "µs", Value: 8.2},
		{Row: "A6", What: "GPU to GPU, staged in host memory", Unit: "µs", Value: 16.8},
		{Row: "A6", What: "GPU to GPU, MVAPICH over InfiniBand", Unit: "µs", Value: 17.4},
		{Row: "A6", What: "copy of cuMemcpy, which staging takes", Unit: "µs", Value: 10},
		{Row: "A6", What: "messages up to which the card is the fastest", Unit: "KiB", Value: 128},
	}
	for _, c := range Cables {
		all = append(all, Reported{Row: "A12", What: c.What, Unit: "errors a bit", Value: c.BitErrors, Bound: true})
	}
	return append(all, []Reported{
		{Row: "A31", What: "host memory written, addresses translated by a processor", Unit: "GB/s", Value: 1.5},
		{Row: "A31", What: "host memory written, addresses translated by a TLB", Unit: "GB/s", Value: 2.2},
		{Row: "A33", What: "host memory read", Unit: "GB/s", Value: 2.4},
		{Row: "A33", What: "GPU memory read, Fermi, peer to peer", Unit: "GB/s", Value: 1.5},
		{Row: "A33", What: "GPU memory read, Fermi, BAR1", Unit: "GB/s", Value: 0.15},
		{Row: "A33", What: "GPU memory read, Kepler, peer to peer or BAR1", Unit: "GB/s", Value: 1.6},
		{Row: "A33", What: "time between two read requests", Unit: "ns", Value: 80},
		{Row: "A34", What: "link at 350 MHz", Unit: "GB/s", Value: 2.2},
		{Row: "A34", What: "GPU memory written", Unit: "GB/s", Value: 2.2},
		{Row: "A35", What: "most that peer-to-peer DMA gives; larger messages are staged", Unit: "GB/s", Value: 1.5},
	}...)
}

// Generation is a link of the report: lanes at a rate, in a line code.
type Generation struct {
	Name     string
	Lanes    int
	Gigabits float64 // of a lane
	Code     Encoding
}

// Generations are the card's link as operated, as designed, and the next one (A7,
// A38).
var Generations = []Generation{
	{"operated", 4, 7, Code8b10b},
	{"designed", 4, 8.5, Code8b10b},
	{"next", 4, 14.1, Code128b130b},
}

// Raw returns the gigabits a second on the line.
func (g Generation) Raw() float64 { return float64(g.Lanes) * g.Gigabits }

// Rate returns the bytes a second that the line code leaves.
func (g Generation) Rate() float64 { return g.Code.Rate(g.Raw()) }

// Cycle returns the seconds that one word takes.
func (g Generation) Cycle() float64 { return WordBytes / g.Rate() }

// Memory of one channel's FIFOs: two virtual channels that receive, one
// buffer that sends.
const (
	receiveBytes = 16 << 10
	sendBytes    = 8 << 10
)

// ChannelMemory returns the bytes of FIFOs of one link with so many virtual
// channels.
func ChannelMemory(channels int) int { return channels*receiveBytes + sendBytes }

// generationFigures are the numbers of A7, A8, A25, A28 and A38.
func generationFigures() []Figure {
	operated, designed, next := Generations[0], Generations[1], Generations[2]
	return []Figure{
		{Row: "A7", What: "link as operated", Formula: "lanes·rate", Unit: "Gb/s", Published: 28, Model: operated.Raw(), Step: 0.1},
		{Row: "A7", What: "link as designed", Formula: "lanes·rate", Unit: "Gb/s", Published: 34, Model: designed.Raw(), Step: 0.1},
		{Row: "A8", What: "what 8b10b takes", Formula: "1−8/10", Unit: "%", Published: 20, Model: 100 * (1 - Code8b10b.Rate(8)/1e9), Step: 1},
		{Row: "A2", What: "a data flow of the router, 28 Gb/s", Formula: "rate·8/10", Unit: "GB/s", Published: 2.8, Model: operated.Rate() / 1e9, Step: 0.1},
		{Row: "A25", What: "FIFOs of a channel", Formula: "2·16 KiB + 8 KiB", Unit: "KiB", Published: 40, Model: float64(ChannelMemory(2)) / 1024, Step: 1},
		{Row: "A25", What: "FIFOs of six", Formula: "6·channel", Unit: "KiB", Published: 240, Model: 6 * float64(ChannelMemory(2)) / 1024, Step: 1},
		{Row: "A28", What: "time between credits at 28 Gb/s", Formula: "C·128/(rate·8/10)", Unit: "ns", Published: 200, Model: CreditPeriod * operated.Cycle() * 1e9, Step: 1},
		{Row: "A38", What: "the next link", Formula: "lanes·rate", Unit: "Gb/s", Published: 56, Model: next.Raw(), Step: 1},
		{Row: "A38", What: "PCI Express 3.0, 8 lanes", Formula: "8 GT/s·lanes·128/130", Unit: "GB/s", Published: 8, Model: Lanes{3, 8}.Rate() / 1e9, Step: 1},
		{Row: "A2", What: "PCI Express 2.0, 8 lanes", Formula: "5 GT/s·lanes·8/10", Unit: "GB/s", Published: 4, Model: Lanes{2, 8}.Rate() / 1e9, Step: 0.1},
	}
}
