//go:build !linux

package report

// ringMeasurements are none: rings are for Linux.
func ringMeasurements() []measurement { return nil }
