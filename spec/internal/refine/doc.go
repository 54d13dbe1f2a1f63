// Package refine decides whether a process of CSP refines another: in the traces model, the stable
// failures model, or the failures-divergences model, over explicit states. Debian has neither ProB nor
// cspmf, so the checker is the tree's own.
//
// Its tests claim that the halves of host and device, as their rows have them, with the rings between,
// refine as many channels of CSP whose sender may give up, and diverge never. For messages to the
// device and to the host these are synchronous channels; for transfers channels that both sides commit:
// a host that gives up once both have begun ends both calls, or neither. Transfers to the device have
// one list, transfers to the host two, in a window of one. The bounds are 2 channels, with rings of 2
// slots, and 4 channels of messages to the device with rings of 1. The tests claim nothing of other
// sizes, of more lists, of closes, or of the order of accesses to memory.
package refine
