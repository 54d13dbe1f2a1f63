// Package dmaloop sends sequence numbers to a device and back and compares them: the test
// program of the stack analysis, in its three variants. A device that loses, repeats or mixes
// up bytes is found with the place.
package dmaloop
