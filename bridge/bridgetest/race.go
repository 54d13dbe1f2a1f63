//go:build race

package bridgetest

// raceEnabled: the race detector bounds goroutines and allocates by itself.
const raceEnabled = true
