//go:build unix

package cli

import (
	"syscall"
	"time"
)

// CPUTime is the CPU time this process used, user and system, all threads. A
// simulated device in this process is part of it.
func CPUTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
