package cli

import (
	"time"

	"github.com/nfcomms/nfcomms/internal/units"
)

// ParseSize reads "56", "64KiB" or "20MB" as bytes, one at least.
func ParseSize(s string) (int, error) {
	n, err := units.ParseSize(s)
	if err != nil {
		return 0, Usagef("size %w", err)
	}
	return n, nil
}

// ParseSizes reads sizes as ParseSize does, one at least.
func ParseSizes(list []string) ([]int, error) {
	sizes := make([]int, 0, len(list))
	for _, s := range list {
		n, err := ParseSize(s)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, n)
	}
	if len(sizes) == 0 {
		return nil, Usagef("the list of sizes is empty")
	}
	return sizes, nil
}

// SizeText writes bytes exactly.
func SizeText(n int) string { return units.Exact(uint64(n)) }

// GBs is a rate in GB/s: bytes per nanosecond.
func GBs(bytes int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(bytes) / float64(d)
}
