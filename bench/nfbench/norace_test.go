//go:build !race

package main

// raceDetector means that this test runs under it.
const raceDetector = false
