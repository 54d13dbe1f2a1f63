package papers

// TLP describes the frame of a transaction layer packet on PCI Express.
type TLP struct {
	HeaderDW int  // 3, or 4 with 64-bit addresses
	ECRC     bool // end-to-end check sum
}

// Overhead returns the bytes a packet has beside its payload: start 1, sequence
// number 2, header, ECRC 4, LCRC 4, end 1.
func (t TLP) Overhead() int {
	n := 1 + 2 + 4*t.HeaderDW + 4 + 1
	if t.ECRC {
		n += 4
	}
	return n
}

// Efficiency returns the share of payload bytes in a packet.
func (t TLP) Efficiency(payload int) float64 {
	return float64(payload) / float64(payload+t.Overhead())
}

// MaxPayload is the most bytes that a transaction layer packet may carry.
const MaxPayload = 4096

// DirectShare returns the part of the largest packet that a message uses.
func DirectShare(message int) float64 { return float64(message) / MaxPayload }

// Packets returns how many packets of at most payload bytes carry n bytes that
// start at offset: none crosses a multiple of payload.
func Packets(n, offset, payload uint64) uint64 {
	if n == 0 || payload == 0 {
		return 0
	}
	first := offset % payload
	return (first + n + payload - 1) / payload
}

// Lanes is a PCI Express link.
type Lanes struct {
	Generation, Width int
}

// generation is the rate of one lane and its code.
type generation struct {
	gigatransfers float64
	code          Encoding
}

var generations = []generation{
	1: {2.5, Code8b10b},
	2: {5, Code8b10b},
	3: {8, Code128b130b},
	4: {16, Code128b130b},
	5: {32, Code128b130b},
}

// Rate returns bytes a second in one direction, before packets: the line rate
// less its code. Zero for a generation other than 1 to 5.
func (l Lanes) Rate() float64 {
	if l.Generation < 1 || l.Generation >= len(generations) || l.Width < 1 {
		return 0
	}
	g := generations[l.Generation]
	return g.code.Rate(g.gigatransfers * float64(l.Width))
}

// Payload returns bytes of payload a second with packets of that size.
func (l Lanes) Payload(t TLP, payload int) float64 { return l.Rate() * t.Efficiency(payload) }
