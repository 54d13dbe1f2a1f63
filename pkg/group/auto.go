package group

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/model"
)

// Auto is the algorithm that chooses. It starts with isend, asks the model which
// others may be faster for what the members send, tries those for some steps, and
// stays with the fastest until the load changes. All members choose alike: they
// gather what each has measured. Stats has what was chosen, and why.
const Auto = "auto"

// Load is what the members of a group send in a step, on average.
type Load struct {
	Members int
	// Frames are sent per member: its targets. Packages are those with bytes.
	Frames, Packages float64
	// Bytes of a package.
	Bytes float64
}

// Cost is what a transport takes: for a frame, for a round in which a member can
// but wait for one other, and for a byte.
type Cost struct {
	Frame, Round time.Duration
	// Byte is in nanoseconds.
	Byte float64
}

// Prediction is what a step of an algorithm should take.
type Prediction struct {
	Algorithm string
	Time      time.Duration
}

// MeshCost is what a Mesh takes on a small machine. Auto takes it for every
// transport: what it rules out is slower by a factor, the rest is decided by trial.
func MeshCost() Cost { return Cost{Frame: 150, Round: 600, Byte: 0.15} }

// Predict models a step: a member sends its frames one by one; in rounds it waits for a partner in
// each; a package that travels is copied twice at each stop; gathered packages reach every member,
// not only their targets. The last is why gathering loses on many members: by appendix B of the
// report a member needs but model.ExchangedBytes of all that model.ProducedBytes adds up to.
func Predict(l Load, c Cost) []Prediction {
	n := float64(l.Members)
	rounds := math.Ceil(math.Log2(max(n, 1)))
	bytes := l.Packages * l.Bytes
	frames := l.Frames*float64(c.Frame) + bytes*c.Byte
	const look = 2 // ns to look at one posted receive
	list := []Prediction{
		{"isend", time.Duration(frames)},
		{"isend-irecv", time.Duration(frames + look*l.Frames*l.Frames/2)},
		{"cpex", time.Duration(frames + min(l.Frames, n-1)*float64(c.Round))},
		{"bruck", time.Duration(rounds*float64(c.Frame+c.Round) + rounds/2*bytes*2*c.Byte)},
		{"allgather", time.Duration(2*rounds*float64(c.Frame+c.Round) + n*(bytes+entryHeader*l.Packages)*c.Byte)},
	}
	slices.SortStableFunc(list, func(a, b Prediction) int { return int(a.Time - b.Time) })
	return list
}

// SpikeLoad is the load of the report's benchmark: cells that are shared evenly,
// listen to so many others drawn at random, fire so often a second, and send in
// each step of so many milliseconds, event bytes for a spike (appendices A and B).
func SpikeLoad(cells, members, synapses int, hertz, milliseconds float64, event int) Load {
	own := float64(cells) / float64(members)
	met := 1 - math.Exp(own*float64(synapses)*math.Log1p(-1/float64(members)))
	frames := float64(members-1) * met
	rate := hertz * float64(event)
	got := model.ExchangedBytes(cells, members, synapses, rate) * milliseconds / 1000
	l := Load{Members: members, Frames: float64(members - 1), Packages: frames}
	if frames > 0 {
		l.Bytes = got / float64(members) * float64(members-1) / frames
	}
	return l
}

// How long auto does what, in exchanges.
const (
	autoWarm    = 4  // to see the load, and how long a step takes
	autoRounds  = 4  // in each of which every candidate has a trial
	autoTrial   = 4  // exchanges in a row, at least
	autoLong    = 20 // and at most, as many as take autoTime
	autoTime    = time.Millisecond
	autoStay    = 128 // first; doubles up to autoStayMax
	autoStayMax = 8192
	// autoFar is how much slower than the best by the model is not tried;
	// autoGain is how much faster than that best a candidate must have been to be
	// taken, as trials of equals differ; autoChange is the factor by which a load is
	// another one.
	autoFar    = 4
	autoGain   = 1.1
	autoChange = 2
)

type auto struct {
	phase    func(*auto, *exchangeStep) error
	at       int // exchanges in this phase
	names    []string
	run      []exchanger
	times    []float64 // by round and candidate: ns of a step in that trial
	trial    int       // exchanges of one
	since    time.Time // what is timed began
	fastest  float64   // ns of the fastest step while the load is looked at
	chosen   exchanger
	stay     int
	load     Load // that the choice was made for
	packages int
	bytes    int // and exchanges since the load was looked at
	seen     int
}

func newAuto() exchanger {
	isend, _ := find("isend") // it is there
	return &auto{phase: (*auto).warm, chosen: isend.start(), stay: autoStay}
}

func (a *auto) Exchange(s *exchangeStep) error {
	a.seen++
	packages, bytes := 0, 0
	for i := range s.g.exchange.out {
		if n := len(s.g.exchange.out[i].Data); n > 0 {
			packages, bytes = packages+1, bytes+n
		}
	}
	a.packages, a.bytes = a.packages+packages, a.bytes+bytes
	return a.phase(a, s)
}

// Members gather at the beginning of a step: behind a package of this step, which
// the user may look at, a link may keep other frames back.

// warm exchanges until the load is known, and makes the list of candidates.
func (a *auto) warm(s *exchangeStep) error {
	switch a.at {
	case 0:
		if a.names == nil { // else what was chosen continues meanwhile
			s.g.stats.chose("isend", "looking at the load")
		}
		a.fastest = math.Inf(1)
	case autoWarm:
		if err := a.look(s, &a.load); err != nil {
			return err
		}
		a.list()
		s.g.stats.chose(Auto, "trying "+strings.Join(a.names, ", "))
		a.at, a.phase = 0, (*auto).try
		return a.try(s)
	}
	a.at++
	a.since = time.Now()
	err := exchangeAll(s, a.chosen)
	a.fastest = min(a.fastest, float64(time.Since(a.since)))
	return err
}

// exchangeAll is a step to the end of it.
func exchangeAll(s *exchangeStep, by exchanger) error {
	if err := by.Exchange(s); err != nil {
		return err
	}
	return s.WaitAll()
}

// list takes what the model does not rule out.
func (a *auto) list() {
	a.names, a.run = nil, nil
	a.trial = int(min(max(float64(autoTime)/a.fastest, autoTrial), autoLong))
	best := Predict(a.load, MeshCost())
	for _, p := range best {
		if p.Time <= autoFar*best[0].Time {
			algorithm, _ := find(p.Algorithm) // Predict names what is there
			a.names = append(a.names, p.Algorithm)
			a.run = append(a.run, algorithm.start())
		}
	}
	a.times = make([]float64, autoRounds*len(a.run))
}

// current is the trial that a.at is in, by round and candidate. Each second round takes the
// other order: a candidate that always follows the one that leaves least in the caches would seem slow.
func (a *auto) current() int {
	n := len(a.run)
	round, i := a.at/a.trial/n, a.at/a.trial%n
	if round%2 == 1 {
		i = n - 1 - i
	}
	return round*n + i
}

// try runs the candidates in turn and measures them.
func (a *auto) try(s *exchangeStep) error {
	if a.at == a.trial*autoRounds*len(a.run) {
		if err := a.choose(s); err != nil {
			return err
		}
		a.at, a.phase = 0, (*auto).use
		return a.use(s)
	}
	trial := a.current()
	if err := exchangeAll(s, a.run[trial%len(a.run)]); err != nil {
		return err
	}
	a.at++
	switch a.at % a.trial {
	case 1: // the first step after a change pays for it
		a.since = time.Now()
	case 0: // a look at the clock for each step costs as much as a short step
		a.times[trial] = float64(time.Since(a.since)) / float64(a.trial-1)
	}
	return nil
}

// pick takes the candidate with the fastest trial, or the first, which the model
// prefers: where that is hardly slower, and where it was faster in more than one round,
// as a single trial may have been lucky.
func pick(times []float64, candidates int) int {
	fastest := bestTrials(times, candidates)
	best := slices.Index(fastest, slices.Min(fastest))
	lost := 0
	for i := 0; i < len(times); i += candidates {
		if times[i] < times[i+best] {
			lost++
		}
	}
	if fastest[0] < autoGain*fastest[best] || lost > 1 {
		return 0
	}
	return best
}

// bestTrials returns, of trials of so many candidates in turn, the fastest of each.
func bestTrials(times []float64, candidates int) []float64 {
	best := slices.Clone(times[:candidates])
	for i, t := range times {
		best[i%candidates] = min(best[i%candidates], t)
	}
	return best
}

// choose gathers what the trials took. The time of a trial is the mean of the members:
// one that is late finds what it waits for, and takes less for the same steps while
// others take more. Of the trials of a candidate the fastest counts, as what others
// take from the processor only ever adds to one.
func (a *auto) choose(s *exchangeStep) error {
	all, err := means(s, a.times)
	if err != nil {
		return err
	}
	mean := bestTrials(all, len(a.run))
	best := pick(all, len(a.run))
	a.chosen = a.run[best]
	why := fmt.Sprintf("%d members, %.1f packages of %.0f bytes each; measured", a.load.Members, a.load.Packages, a.load.Bytes)
	for i, name := range a.names {
		why += fmt.Sprintf(" %s %v", name, time.Duration(mean[i]).Round(100))
	}
	s.g.stats.chose(a.names[best], why)
	return nil
}

// use exchanges by what was chosen, and looks at the load now and then.
func (a *auto) use(s *exchangeStep) error {
	if a.at == a.stay {
		var load Load
		if err := a.look(s, &load); err != nil {
			return err
		}
		a.at, a.stay = 0, min(2*a.stay, autoStayMax)
		if differs(load.Packages, a.load.Packages) || differs(load.Packages*load.Bytes, a.load.Packages*a.load.Bytes) {
			a.stay, a.phase = autoStay, (*auto).warm
			return a.warm(s)
		}
	}
	a.at++
	return a.chosen.Exchange(s)
}

func differs(a, b float64) bool { return a > autoChange*b+1 || b > autoChange*a+1 }

// look gathers the load since the last look, and the fastest step of it.
func (a *auto) look(s *exchangeStep, l *Load) error {
	steps := float64(a.seen)
	mean, err := means(s, []float64{float64(len(s.Targets())), float64(a.packages) / steps, float64(a.bytes) / steps, a.fastest})
	if err != nil {
		return err
	}
	a.packages, a.bytes, a.seen, a.fastest = 0, 0, 0, mean[3]
	*l = Load{Members: s.Size(), Frames: mean[0], Packages: mean[1]}
	if l.Packages > 0 {
		l.Bytes = mean[2] / l.Packages
	}
	return nil
}

// autoTag is beyond those of the algorithms, in whose steps this gather is.
const autoTag = 1 << 15

// means gathers numbers and returns the mean of each, the same at all members.
func means(s *exchangeStep, own []float64) ([]float64, error) {
	c := s.g.collective()
	c.tag = autoTag
	b := s.g.bytes(8 * len(own))
	for i, x := range own {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	}
	same := slices.Repeat([]int{len(b)}, s.Size())
	all, err := c.gather(b, same)
	if err != nil {
		return nil, err
	}
	mean := make([]float64, len(own))
	for from, theirs := range all {
		for i := range mean {
			x := math.Float64frombits(binary.LittleEndian.Uint64(theirs[8*i:]))
			if !(x >= 0 && x <= math.MaxInt64) { // or no number at all
				return nil, aboutf([]int{from}, ErrDisagree, "a load, or a time, of %v", x)
			}
			mean[i] += x / float64(len(all))
		}
	}
	return mean, nil
}
