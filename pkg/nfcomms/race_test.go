//go:build race

package nfcomms

// raceEnabled: the race detector makes sync.Pool drop items at random.
const raceEnabled = true
