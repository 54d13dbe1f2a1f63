//go:build (!amd64 && !arm64) || race

package mailbox

import "sync/atomic"

// storeRelease stores v at p after everything stored before it, in a way that
// the race detector sees.
func storeRelease(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
