package group

import (
	"math/bits"
	"sync"
	"time"
)

// Stats counts what a member did. It is a copy.
type Stats struct {
	// Rank and Size are those of the group now.
	Rank, Size int
	// Algorithm is what exchanges now, Auto while that tries several; Why is how it
	// was chosen.
	Algorithm, Why string
	// Steps ended well, Failed did not.
	Steps, Failed uint64
	// FramesSent and the following count what was sent by the link, the
	// frames of others that an algorithm passes on included.
	FramesSent, FramesReceived uint64
	BytesSent, BytesReceived   uint64
	// Time was spent in steps; Waiting is the part of it in which there was
	// nothing to do but wait for others. Of short steps, one in sixteen is
	// measured and counts as all of them, in the histograms as well.
	Time, Waiting time.Duration
	// StepTime and StepWaiting are histograms of both: element i counts the
	// steps of less than 2^i ns that are in no element before.
	StepTime, StepWaiting [64]uint64
}

type traffic struct{ FramesSent, FramesReceived, BytesSent, BytesReceived uint64 }

// stats is Stats as it grows. Fields of the running step belong to the call; any goroutine may read
// the rest.
type stats struct {
	every   bool // each step is measured
	skip    int  // steps that are not measured before the next that is
	next    int  // how many steps the next that is measured stands for
	weight  int  // of the step that runs: how many it stands for, 0: not measured
	started time.Time
	waiting time.Duration // in this step
	step    traffic       // of this step

	mu  sync.Mutex
	all Stats
}

// A step shorter than shortStep is not measured sampleGap-1 times of sampleGap: the
// clock would cost a good part of it.
const (
	shortStep = 20 * time.Microsecond
	sampleGap = 16
)

func (s *stats) start() {
	if s.skip > 0 {
		s.skip--
		s.weight = 0
		return
	}
	s.weight = max(s.next, 1)
	s.started, s.waiting = time.Now(), 0
}

// clock is the time in a step that is measured.
func (s *stats) clock() time.Time {
	if s.weight == 0 {
		return time.Time{}
	}
	return time.Now()
}

func (s *stats) waited(since time.Time) {
	if s.weight > 0 {
		s.waiting += time.Since(since)
	}
}

func (s *stats) sent(n int) {
	s.step.FramesSent++
	s.step.BytesSent += uint64(n)
}

func (s *stats) received(n int) {
	s.step.FramesReceived++
	s.step.BytesReceived += uint64(n)
}

func (s *stats) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.all.Failed++
	} else {
		s.all.Steps++
	}
	s.all.FramesSent += s.step.FramesSent
	s.all.FramesReceived += s.step.FramesReceived
	s.all.BytesSent += s.step.BytesSent
	s.all.BytesReceived += s.step.BytesReceived
	s.step = traffic{}
	if s.weight > 0 {
		s.measure(time.Since(s.started))
	}
}

// measure counts the step that ran, and says when to measure again. Must hold mu.
func (s *stats) measure(took time.Duration) {
	s.all.Time += took * time.Duration(s.weight)
	s.all.Waiting += s.waiting * time.Duration(s.weight)
	s.all.StepTime[bits.Len64(uint64(took))] += uint64(s.weight)
	s.all.StepWaiting[bits.Len64(uint64(s.waiting))] += uint64(s.weight)
	if s.next = 1; took < shortStep && !s.every {
		s.next, s.skip = sampleGap, sampleGap-1
	}
}

// Stats returns what this member did so far.
func (g *Group) Stats() Stats {
	g.stats.mu.Lock()
	defer g.stats.mu.Unlock()
	s := g.stats.all
	s.Rank, s.Size = g.Rank(), g.Size()
	return s
}

// joined forgets what joining took: steps count from then on.
func (s *stats) joined() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = Stats{Algorithm: s.all.Algorithm, Why: s.all.Why}
}

// chose notes which algorithm exchanges from now on.
func (s *stats) chose(algorithm, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Algorithm, s.all.Why = algorithm, why
}
