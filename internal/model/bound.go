package model

import "math"

// ErrorBound returns the rate that errors stay below, at a confidence below 1, when
// so many were seen in so many trials. Without errors it is −ln(1−c)/n.
func ErrorBound(errors int, trials, confidence float64) float64 {
	if trials <= 0 || errors < 0 || confidence <= 0 || confidence >= 1 {
		return math.NaN()
	}
	low, high := float64(errors), float64(errors)+40+20*math.Sqrt(float64(errors)+1)
	for range 200 { // the mean at which so few are seen that rarely
		mid := (low + high) / 2
		if poisson(errors, mid) > 1-confidence {
			low = mid
		} else {
			high = mid
		}
	}
	return high / trials
}

// poisson is the probability of at most n events where mean are expected.
func poisson(n int, mean float64) float64 {
	sum := 0.0
	for k := range n + 1 {
		lg, _ := math.Lgamma(float64(k) + 1)
		sum += math.Exp(float64(k)*math.Log(mean) - mean - lg)
	}
	return min(sum, 1)
}
