package papers

// Lanes of a link of the APEnet+ report: a word of 128 bits is striped over them, 32 bits each.
const (
	LinkLanes = 4
	// DeskewDepth is how many symbols the FIFO of a lane holds. Lanes may be apart by one less.
	DeskewDepth = 16
)

// Deskew joins the symbols of lanes that are not of one length. The FIFO of a lane is written from
// its DESKEW WORD (K28.3) on, and a word is read when no FIFO is empty.
type Deskew struct {
	lanes [LinkLanes]deskewLane
	// Overflows counts lanes that were further apart than the FIFOs are deep.
	Overflows int
}

// deskewLane is the FIFO of one lane.
type deskewLane struct {
	symbols []uint32
	marked  bool // its DESKEW WORD arrived: symbols count from there
}

// Mark notes that the DESKEW WORD arrived on a lane, which is not passed on.
func (d *Deskew) Mark(lane int) { d.lanes[lane] = deskewLane{marked: true} }

// Put notes that a symbol arrived on a lane. A lane whose FIFO is full waits for the next mark.
func (d *Deskew) Put(lane int, symbol uint32) {
	l := &d.lanes[lane]
	switch {
	case !l.marked:
	case len(l.symbols) == DeskewDepth:
		d.Overflows++
		*l = deskewLane{}
	default:
		l.symbols = append(l.symbols, symbol)
	}
}

// Take returns a whole word if every lane has its part.
func (d *Deskew) Take() (word [LinkLanes]uint32, ok bool) {
	for _, l := range d.lanes {
		if len(l.symbols) == 0 {
			return word, false
		}
	}
	for i := range d.lanes {
		word[i], d.lanes[i].symbols = d.lanes[i].symbols[0], d.lanes[i].symbols[1:]
	}
	return word, true
}

// Skewed is what comes of a lane that is late.
type Skewed struct {
	Symbols   int `json:"symbols"`
	Words     int `json:"words"` // of those that were sent, whole and in order
	Sent      int `json:"sent"`
	Overflows int `json:"overflows"`
}

// SimulateSkew sends words over lanes of which one is late by so many symbols.
func SimulateSkew(symbols int) Skewed {
	const sent = 100
	r, d := Skewed{Symbols: symbols, Sent: sent}, Deskew{}
	for t := range sent + symbols + 1 {
		for lane := range LinkLanes {
			at := t
			if lane == LinkLanes/2 {
				at -= symbols
			}
			switch {
			case at == 0:
				d.Mark(lane)
			case at > 0 && at <= sent:
				d.Put(lane, uint32(at))
			}
		}
		for word, ok := d.Take(); ok; word, ok = d.Take() {
			if n := uint32(r.Words + 1); word == [LinkLanes]uint32{n, n, n, n} {
				r.Words++
			}
		}
	}
	r.Overflows = d.Overflows
	return r
}
