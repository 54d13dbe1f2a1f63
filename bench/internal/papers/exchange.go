package papers

import "math"

// euler is the constant of Euler and Mascheroni.
const euler = 0.57721566490153286

// CouponDraws is E of the spike-exchange report: how many draws it takes, on
// average, until each of kinds has been drawn. The report leaves out
// what vanishes as kinds grow.
func CouponDraws(kinds int) float64 {
	l := float64(kinds)
	return l*math.Log(l) + euler*l + 0.5
}

// Coverage is P: the probability that draws with replacement out of cells, of
// which each of members holds the same number, meet every member.
func Coverage(cells, members int, draws float64) float64 {
	share := 1 / float64(members)
	if cells < members {
		return 0 // a member without a cell is never met
	}
	missed := math.Exp(draws * math.Log1p(-share))
	return math.Exp(float64(members) * math.Log1p(-missed))
}

// StepBytes is the volume of one step of the benchmark: all events of networks
// of cells that fire hertz times a second, event bytes each, within a step of
// milliseconds.
func StepBytes(cells, networks int, hertz, milliseconds float64, event int) float64 {
	return float64(cells) * float64(networks) * hertz / 1000 * milliseconds * float64(event)
}
