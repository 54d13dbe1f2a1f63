//go:build race

package bridgetest

// RaceEnabled: the race detector bounds goroutines and allocates by itself.
const RaceEnabled = true
