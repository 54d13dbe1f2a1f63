package meter

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Every is how seldom direct messages are measured: one in Every. Reading the
// clock twice costs a sixth of a message. Transfers are all measured.
const Every = 64

// Instant is a point in time; zero stands for none.
type Instant int64

// origin makes the clock cheap: the time since it is one read.
var origin = time.Now()

// Now reads the clock.
func Now() Instant { return Instant(time.Since(origin)) | 1 }

// Time returns the point in time by the wall clock.
func (i Instant) Time() time.Time { return origin.Add(time.Duration(i)) }

// Elapsed returns the time since i.
func (i Instant) Elapsed() time.Duration { return time.Duration(Now() - i) }

// Sampler picks one call in Every. It is not safe for concurrent use.
type Sampler struct{ tick uint32 }

// NewSampler starts anywhere in the cycle, so that channels with few messages
// are measured no more often than others.
func NewSampler() Sampler { return Sampler{rand.Uint32()} }

// Start returns when the next call began, zero if it is not one to measure.
// waiting is when it began to wait for its turn, zero if it did not.
func (s *Sampler) Start(waiting Instant) Instant {
	s.tick++
	if s.tick%Every != 0 {
		return 0
	}
	if waiting != 0 {
		return waiting
	}
	return Now()
}

// Path measures one direction of one path. It is safe for concurrent use; the
// zero value is ready.
type Path struct {
	errors    [abi.StatusCount]atomic.Uint64
	time      atomic.Int64
	bytes     atomic.Uint64
	durations [bridge.DurationBuckets]atomic.Uint64
	sizes     [bridge.SizeBuckets]atomic.Uint64
}

// Failed counts a call that ended with an error.
func (p *Path) Failed(err error) {
	s, _ := bridge.StatusOf(err)
	p.errors[s].Add(1)
}

// Delivered measures a call that began at start and delivered n bytes.
func (p *Path) Delivered(start Instant, n int) { p.Took(max(1, start.Elapsed()), n) }

// Took adds what took so long and delivered n bytes. Durations go before sizes, and
// AddTo reads them last, so that no histogram of sizes holds more than there were calls.
func (p *Path) Took(took time.Duration, n int) {
	p.time.Add(int64(took))
	p.bytes.Add(uint64(n))
	p.durations[durationIndex(took)].Add(1)
	p.sizes[sizeIndex(n)].Add(1)
}

// AddTo adds what was measured to a profile.
func (p *Path) AddTo(to *bridge.PathProfile) {
	for i := range p.errors {
		to.Errors[i] += p.errors[i].Load()
	}
	for i := range p.sizes {
		to.Sizes[i] += p.sizes[i].Load()
	}
	for i := range p.durations {
		to.Durations[i] += p.durations[i].Load()
	}
	to.Time += time.Duration(p.time.Load())
	to.Bytes += p.bytes.Load()
}

// sizeIndex returns the bucket of Sizes: the smallest n with size <= 2^n.
func sizeIndex(size int) int {
	return min(bits.Len64(uint64(max(1, size)-1)), bridge.SizeBuckets-1)
}

// bounds are the eighths of an octave: bounds[i] = 2^(i/8 - 1).
var bounds = func() (b [8]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(i)/8 - 1)
	}
	return b
}()

// durationIndex returns the bucket of Durations: the smallest n with
// took <= 2^((n+1)/8 + DurationFirst) s.
func durationIndex(took time.Duration) int {
	fraction, octave := math.Frexp(took.Seconds()) // fraction in [1/2, 1)
	n := 0
	for n < len(bounds) && bounds[n] < fraction {
		n++
	}
	n += 8*(octave-1-bridge.DurationFirst) - 1
	return min(max(n, 0), bridge.DurationBuckets-1)
}
