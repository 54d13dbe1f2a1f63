//go:build (amd64 || arm64) && !race

package mailbox

// storeRelease stores v at p after everything stored before it. Unlike the
// store of sync/atomic it is no full fence, which on amd64 would wait for each
// slot's cache line in turn.
//
//go:noescape
func storeRelease(p *uint64, v uint64)
