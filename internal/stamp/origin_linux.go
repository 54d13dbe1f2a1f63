package stamp

import (
	"math"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/meter"
)

// origin is what CLOCK_MONOTONIC shows at [meter.Instant] 0, in nanoseconds. Instants are of the same
// clock, so it does not change; the closest of some readings is right to about a hundred.
var origin = sync.OnceValue(func() (zero int64) {
	best := meter.Instant(math.MaxInt64)
	for range 16 {
		var t unix.Timespec
		before := meter.Now()
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
		took := meter.Now() - before
		if err == nil && took < best {
			best, zero = took, t.Nano()-int64(before+took/2)
		}
	}
	return zero
})
