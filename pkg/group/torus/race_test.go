//go:build race

package torus

const raceEnabled = true
