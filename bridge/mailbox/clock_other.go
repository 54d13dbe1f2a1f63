//go:build !linux

package mailbox

import "time"

// monotonic is the clock that a device in a process of this machine has; false if there is none.
func monotonic() (time.Duration, bool) { return 0, false }
