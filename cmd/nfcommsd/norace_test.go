//go:build !race

package main

// memoryFactor: what the daemon uses counts as it is.
const memoryFactor = 1
