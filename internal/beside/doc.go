// Package beside tests that objects may be used by many goroutines: it runs every method of some
// objects beside every other one, among them those that end the objects. The methods are found by
// reflection, so that a new one takes part by itself.
package beside
