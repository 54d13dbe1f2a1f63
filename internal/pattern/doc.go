// Package pattern has the words and bytes that programs of the conformance suite send and expect, for
// the suite and for devices that are written in Go.
package pattern
