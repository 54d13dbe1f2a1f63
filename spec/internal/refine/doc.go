// Package refine decides whether a process of CSP refines another: in the traces model, the stable
// failures model, or the failures-divergences model, over explicit states.
//
// Its tests claim that the halves of host and device, as their rows have them, with the rings between,
// refine as many channels of CSP whose sender may give up, and diverge never. For messages to the device
// and to the host these are synchronous channels; for transfers to the device, of one list, channels
// that both sides commit: a sender that gives up once both have begun ends both calls, or neither. The
// bounds are 2 channels of any two such ways but two transfers, with rings of 2 slots, and 3 channels
// of messages to the device with rings of 1. They claim nothing of other sizes, of transfers to the host
// or of several lists, of closes, or of the order of accesses to memory.
package refine
