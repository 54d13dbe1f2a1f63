//go:build linux

package cli

import "fmt"

// Finding is whether a shape of a paper shows here.
type Finding struct {
	What   string `json:"what"`
	Result string `json:"result"`

	Shape string `json:"-"` // one of the constants
	Why   string `json:"-"` // the figure that decides, or why there is none
}

// Results of a comparison of shapes.
const (
	ShapeSame    = "same"
	ShapeDiffers = "differs"
	ShapeUnknown = "not measured"
	ShapeOpen    = "not decided" // rounds of a measurement disagree
	// Of formulas beside printed figures.
	ShapeRounded = "within the paper's rounding"
	ShapeFitted  = "fitted"
)

// FindingOf makes a finding: a shape shows or does not, with the ratio that decides.
func FindingOf(what string, ratio float64, shows bool) Finding {
	f := Finding{What: what, Result: "shows", Shape: ShapeSame, Why: fmt.Sprintf("%.2f times", ratio)}
	if !shows {
		f.Result, f.Shape = "does not show", ShapeDiffers
	}
	f.Result += fmt.Sprintf(" (%.2f)", ratio)
	return f
}
