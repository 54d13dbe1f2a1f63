//go:build race

package main

// raceDetector says that this test runs under it.
const raceDetector = true
