//go:build !unix

package main

import "time"

// cpuTime is not known here; reports show zero.
func cpuTime() time.Duration { return 0 }
