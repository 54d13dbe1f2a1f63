// Package refine decides whether a process of CSP refines another: in the traces model, the stable
// failures model, or the failures-divergences model, over explicit states.
//
// Its tests claim that the h2d halves of host and device, as their rows have them, with the rings
// between, refine as many synchronous channels whose sender may give up, and diverge never: for
// messages, 2 channels and rings of 2 slots, or 3 channels and rings of 1. They claim nothing of other
// sizes, of transfers, of the d2h half, of closes, or of the order of accesses to memory.
package refine
