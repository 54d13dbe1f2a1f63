package papers

import (
	"errors"
	"fmt"
)

// FlowControl is how a sender learns that the far FIFO has room.
type FlowControl int

const (
	// Classic is the report's way: stop at T_RED, wait until a credit must
	// cover what was sent, continue if the FIFO drained to T_YEL.
	Classic FlowControl = iota
	// Cumulative credits carry the count of words that were ever taken from
	// the FIFO: the sender computes what is on its way, and never waits for
	// longer than it has to.
	Cumulative
)

// LinkConfig describes one run of [SimulateLink].
type LinkConfig struct {
	Flow   FlowControl
	Depth  int // words of the far FIFO
	Period int // cycles between two credits
	Flight Flight
	// Framed sends Magic, Start, Header and Footer with each packet, and
	// Duplex has the sender send credits of its own for the other direction.
	// Without both only the flow control costs, as in E3.
	Framed, Duplex bool
	// Yellow is T_YEL of the classic flow control: a sender that stopped resumes when the far FIFO
	// holds at most so many words; 0: when it is empty.
	Yellow int
	// ReadEvery is how often the host takes a word: each so many cycles.
	ReadEvery int
	// Cycles is the length of the run.
	Cycles int
}

// LinkResult is what a run moved.
type LinkResult struct {
	Payload    int // words that the host took
	MaxDepth   int // most words the FIFO held
	Resumed    int // most words it held, by the last credit, when a stopped sender resumed
	Efficiency float64
}

// ErrConfig means that a configuration makes no sense; the text says why.
var ErrConfig = errors.New("bad model configuration")

func (c *LinkConfig) check() error {
	switch {
	case c.Flow == Classic && c.Depth < 2*PacketWords:
		return fmt.Errorf("%w: depth %d: classic flow control needs room for 2 packets, %d words", ErrConfig, c.Depth, 2*PacketWords)
	case c.Depth < PacketWords:
		return fmt.Errorf("%w: depth %d: less than a packet, %d words", ErrConfig, c.Depth, PacketWords)
	case c.Yellow < 0 || c.Yellow > max(c.Depth-2*PacketWords, 0):
		return fmt.Errorf("%w: T_YEL of %d: a packet must fit between it and T_RED, %d words", ErrConfig, c.Yellow, c.Depth-PacketWords)
	case c.Period <= CreditWords || c.ReadEvery < 1 || c.Cycles < 1:
		return fmt.Errorf("%w: period %d, read every %d, cycles %d", ErrConfig, c.Period, c.ReadEvery, c.Cycles)
	case c.Flight.Data < 1 || c.Flight.Credit < 1 || c.Flight.Local < 0:
		return fmt.Errorf("%w: flight %+v", ErrConfig, c.Flight)
	}
	return nil
}

// credit is what the receiver tells: how much it holds and ever took.
type credit struct{ held, taken int }

// linkSim is the state of a run: one word may leave the sender each cycle.
type linkSim struct {
	c   LinkConfig
	now int

	// The sender.
	sent    int // payload words, ever
	left    int // words of the packet under way, frame included
	frame   int // how many of them are frame
	stopped int // cycle at which T_RED was reached, -1 while sending
	counted int // classic: words in the FIFO when it was last known, and those sent since then
	resumed int
	last    credit

	// The wire: what arrives in how many cycles.
	data    []bool   // a payload word
	credits []credit // a credit; taken < 0: none

	// The receiver.
	held, taken, most int
}

// SimulateLink runs a link cycle by cycle: a sender that always has data, words
// and credits in flight, a FIFO and a host that empties it. It shows where the
// formulas of the report hold, and what cumulative credits change.
func SimulateLink(c LinkConfig) (LinkResult, error) {
	if err := c.check(); err != nil {
		return LinkResult{}, err
	}
	s := &linkSim{
		c: c, stopped: -1,
		data:    make([]bool, c.Flight.Data+c.Flight.Local),
		credits: make([]credit, c.Flight.Credit+c.Flight.Local),
	}
	for i := range s.credits {
		s.credits[i].taken = -1
	}
	for s.now = 0; s.now < c.Cycles; s.now++ {
		s.receive()
		s.send()
	}
	return LinkResult{
		Payload: s.taken, MaxDepth: s.most, Resumed: s.resumed,
		Efficiency: float64(s.taken) / float64(c.Cycles),
	}, nil
}

// receive takes what arrives this cycle, lets the host read, and gives a
// credit when it is time.
func (s *linkSim) receive() {
	at := s.now % len(s.data)
	if s.data[at] {
		s.data[at] = false
		s.held++
		s.most = max(s.most, s.held)
	}
	if s.held > 0 && s.now%s.c.ReadEvery == 0 {
		s.held--
		s.taken++
	}
	back := s.now % len(s.credits)
	if got := s.credits[back]; got.taken >= 0 {
		s.last = got
		s.credits[back].taken = -1
	}
	if s.now%s.c.Period == 0 {
		s.credits[back] = credit{s.held, s.taken}
	}
}

// send puts at most one word on the wire.
func (s *linkSim) send() {
	if s.c.Duplex && s.now%(s.c.Period+CreditWords) < CreditWords {
		return // credits for the other direction
	}
	if s.left == 0 && !s.begin() {
		return
	}
	s.left--
	if s.frame > 0 {
		s.frame--
		return
	}
	s.data[s.now%len(s.data)] = true
	s.sent++
}

// begin starts a packet if the far FIFO certainly takes all of it.
func (s *linkSim) begin() bool {
	if !s.admitted() {
		return false
	}
	s.counted += PacketWords
	s.left = PacketWords
	if s.c.Framed {
		s.frame = FrameWords
		s.left += FrameWords
	}
	return true
}

func (s *linkSim) admitted() bool {
	if s.c.Flow == Cumulative {
		return s.sent-s.last.taken+PacketWords <= s.c.Depth
	}
	red := s.c.Depth - PacketWords
	if s.counted+PacketWords <= red {
		return true
	}
	if s.stopped < 0 {
		s.stopped = s.now
	}
	if s.now-s.stopped < s.c.Flight.Wait(s.c.Period) || s.last.held > s.c.Yellow {
		return false // T_YEL: the FIFO must have drained to it
	}
	s.stopped, s.counted, s.resumed = -1, s.last.held, max(s.resumed, s.last.held)
	return true
}
