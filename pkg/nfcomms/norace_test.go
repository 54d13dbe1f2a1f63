//go:build !race

package nfcomms

const raceEnabled = false
