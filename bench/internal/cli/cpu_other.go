//go:build !unix

package cli

import "time"

// CPUTime is not known here; reports show zero.
func CPUTime() time.Duration { return 0 }
