//go:build race

package main

// memoryFactor: the race detector keeps up to eight bytes for each that a
// program uses, and a siege uses buffers for the most part.
const memoryFactor = 4
