//go:build !unix

package command

import "time"

// CPUTime is not known here.
func CPUTime() time.Duration { return 0 }
