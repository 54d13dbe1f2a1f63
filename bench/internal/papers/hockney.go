package papers

import "fmt"

// Hockney is the line T(n) = T0 + n/Rate through the times of transfers of n
// bytes.
type Hockney struct {
	T0   float64 // seconds before the first byte
	Rate float64 // bytes a second for a transfer without end
}

// Time returns the seconds that n bytes take.
func (h Hockney) Time(n float64) float64 { return h.T0 + n/h.Rate }

// Bandwidth returns the bytes a second that transfers of n bytes reach.
func (h Hockney) Bandwidth(n float64) float64 { return n / h.Time(n) }

// Half returns n½, the size that reaches half of Rate.
func (h Hockney) Half() float64 { return h.T0 * h.Rate }

// Sample is one measured transfer.
type Sample struct {
	Bytes, Seconds float64
}

// FitHockney fits the line to samples of at least two sizes. Relative errors
// weigh alike, so that the longest transfer does not decide alone. A negative
// start-up time, which noise may give, is reported as zero.
func FitHockney(samples []Sample) (Hockney, error) {
	// Minimise Σ ((t0 + n·b − t)/t)²: weights 1/t².
	var w, wn, wnn, wt, wnt float64
	for _, s := range samples {
		if s.Seconds <= 0 || s.Bytes < 0 {
			return Hockney{}, fmt.Errorf("%w: sample of %g bytes in %g s", ErrConfig, s.Bytes, s.Seconds)
		}
		q := 1 / (s.Seconds * s.Seconds)
		w += q
		wn += q * s.Bytes
		wnn += q * s.Bytes * s.Bytes
		wt += q * s.Seconds
		wnt += q * s.Bytes * s.Seconds
	}
	det := w*wnn - wn*wn
	if len(samples) < 2 || det <= 1e-12*w*wnn {
		return Hockney{}, fmt.Errorf("%w: %d samples of one size do not give a line", ErrConfig, len(samples))
	}
	slope := (w*wnt - wn*wt) / det
	if slope <= 0 {
		return Hockney{}, fmt.Errorf("%w: larger transfers take no longer", ErrConfig)
	}
	return Hockney{T0: max(0, (wt-slope*wn)/w), Rate: 1 / slope}, nil
}
