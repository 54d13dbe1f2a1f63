//go:build unix

package ring

import "runtime"

// Wait is how a side waits for the other.
type Wait int

const (
	// Adaptive spins for some microseconds, gives way to others, and then
	// sleeps: fast on a quiet machine, harmless on a crowded one.
	Adaptive Wait = iota
	// Spin never gives its processor up.
	Spin
	// Yield gives its processor to others between two looks.
	Yield
	// Park sleeps at once.
	Park
)

// How long Adaptive waits in which way before it sleeps.
const (
	spins  = 200 // looks without giving way, where a second processor may act
	yields = 20  // looks that give way to processes, and now and then to goroutines
	// goroutines is the number of polls for each that yields to goroutines. Where a processor
	// of the runtime idles, that makes it wake a thread, which costs more than changing to the
	// next process.
	goroutines = 4
)

var processors = runtime.NumCPU()

// Pause passes the moment after a look, of which there were so many before, in this
// way of waiting. False: it is time to sleep, and nothing was done.
func (w Wait) Pause(round int) bool {
	switch {
	case w == Spin, w == Adaptive && round < spins && processors > 1:
	case w == Yield, w == Adaptive && round < spins+yields:
		if processors == 1 || round%goroutines == goroutines-1 {
			runtime.Gosched()
		}
		yield()
	default:
		return false
	}
	return true
}
