package papers

// The link of the APEnet+ report: 128-bit words, one each cycle; packets with
// a payload of at most 256 words; two virtual channels, each with a FIFO at
// the receiver; credits that tell the sender how full that FIFO is (A13–A24).
const (
	// WordBytes is the width of the link.
	WordBytes = 16
	// PacketWords is the longest payload, S_MAX of the report, in words.
	PacketWords = 256
	// FrameWords are Magic, Start, Header and Footer of each packet.
	FrameWords = 4
	// CreditWords is what one credit costs: Magic and the credit itself.
	CreditWords = 2
	// CreditPeriod is C of the report, the cycles between two credits.
	CreditPeriod = 35
)

// Flight is how long news of the far FIFO takes, in cycles.
type Flight struct {
	// Data and Credit are the ways there and back.
	Data, Credit int
	// Local is the way between the receiving and the sending side of one
	// node; it is passed once at either node.
	Local int
}

// PaperFlight is the decomposition that gives the report's W of 145 cycles.
var PaperFlight = Flight{Data: 35, Credit: 35, Local: 20}

// Wait returns W: the cycles after which a sender that stopped knows that a
// credit covers all it has sent, with a credit every period cycles.
func (f Flight) Wait(period int) int { return f.Data + f.Credit + 2*f.Local + period }

// FrameEfficiency is E1: payload words beside what a packet takes on the link.
func FrameEfficiency(payload int) float64 {
	return float64(payload) / float64(payload+FrameWords)
}

// CreditEfficiency is E2: what credits every period cycles leave for data.
func CreditEfficiency(period int) float64 {
	return float64(period) / float64(period+CreditWords)
}

// FlowEfficiency is E3 with the classic flow control: the sender sends whole
// packets until the far FIFO of depth words may hold all but one packet
// (T_RED), then waits cycles for a credit that covers them.
func FlowEfficiency(depth, wait int) float64 {
	sent := depth/PacketWords*PacketWords - PacketWords
	if sent <= 0 {
		return 0
	}
	return float64(sent) / float64(sent+wait)
}

// LinkEfficiency is E_T = E1·E2·E3 of the report, with full packets, its credit
// period and its waiting time.
func LinkEfficiency(depth int) float64 {
	return FrameEfficiency(PacketWords) * CreditEfficiency(CreditPeriod) *
		FlowEfficiency(depth, PaperFlight.Wait(CreditPeriod))
}

// Encoding is a line code: Payload of every Line bits carry data.
type Encoding struct {
	Name          string
	Payload, Line int
}

// The line codes of the report.
var (
	Code8b10b    = Encoding{"8b10b", 8, 10}
	Code128b130b = Encoding{"128b130b", 128, 130}
)

// Rate returns the bytes a second that gigabits a second on the line carry.
func (e Encoding) Rate(gigabits float64) float64 {
	return gigabits * 1e9 / 8 * float64(e.Payload) / float64(e.Line)
}

// LinkBandwidth returns bytes a second of payload over a link of that many
// gigabits a second, coded in 8b10b, into a FIFO of depth words. A host that
// takes less than that a second is what limits the link; 0 for a host
// without a limit.
func LinkBandwidth(gigabits float64, depth int, host float64) float64 {
	link := Code8b10b.Rate(gigabits) * LinkEfficiency(depth)
	if host > 0 {
		return min(link, host)
	}
	return link
}
