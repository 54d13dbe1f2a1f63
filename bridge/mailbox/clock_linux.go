package mailbox

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic is the clock that a device in a process of this machine has; false if there is none.
func monotonic() (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano()), err == nil
}
