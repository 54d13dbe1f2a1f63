// Package refine decides whether a process of CSP refines another: in the traces model, the stable
// failures model, or the failures-divergences model, over explicit states.
package refine
