package main

import (
	"time"

	"github.com/nfcomms/nfcomms/internal/units"
)

// parseSize reads "56", "64KiB" or "20MB" as bytes, one at least.
func parseSize(s string) (int, error) {
	n, err := units.ParseSize(s)
	if err != nil {
		return 0, usagef("size %w", err)
	}
	return n, nil
}

func parseSizes(list []string) ([]int, error) {
	sizes := make([]int, 0, len(list))
	for _, s := range list {
		n, err := parseSize(s)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, n)
	}
	if len(sizes) == 0 {
		return nil, usagef("the list of sizes is empty")
	}
	return sizes, nil
}

// sizeText writes bytes exactly.
func sizeText(n int) string { return units.Exact(uint64(n)) }

// gbs is a rate in GB/s: bytes per nanosecond.
func gbs(bytes int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(bytes) / float64(d)
}
