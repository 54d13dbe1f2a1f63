//go:build linux

package main

import "fmt"

// Finding is whether a shape of a paper shows here.
type Finding struct {
	What   string `json:"what"`
	Result string `json:"result"`

	shape string // one of the constants
}

// Results of a comparison of shapes.
const (
	shapeSame    = "same"
	shapeDiffers = "differs"
	shapeUnknown = "not measured"
)

// findingOf makes a finding: a shape shows or does not, with the ratio that decides.
func findingOf(what string, ratio float64, shows bool) Finding {
	f := Finding{What: what, Result: "shows", shape: shapeSame}
	if !shows {
		f.Result, f.shape = "does not show", shapeDiffers
	}
	f.Result += fmt.Sprintf(" (%.2f)", ratio)
	return f
}
