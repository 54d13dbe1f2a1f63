//go:build race

package hmf

// raceDetector means that this test runs under it.
const raceDetector = true
