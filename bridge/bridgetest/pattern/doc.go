// Package pattern is what the programs of the conformance suite say and
// understand, for the suite and for devices that are written in Go.
package pattern
