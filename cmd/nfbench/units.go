package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units: a suffix that ends like another stands before it.
var units = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

// parseSize reads "56", "64KiB" or "20MB" as bytes.
func parseSize(s string) (int, error) {
	number, scale := strings.TrimSpace(s), 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, scale = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	bytes := v * scale
	if err != nil || bytes < 1 || bytes > 1<<40 || bytes != math.Trunc(bytes) {
		return 0, usagef("size %q is not a number of bytes such as 56, 64KiB or 20MB", s)
	}
	return int(bytes), nil
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

// sizeText writes bytes the shortest exact way.
func sizeText(n int) string {
	for _, u := range []int{2, 5, 1, 3, 0} {
		if unit := int(units[u].bytes); n >= unit && n%unit == 0 {
			return fmt.Sprintf("%d %s", n/unit, units[u].suffix)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// nsText writes nanoseconds with three digits and a unit.
func nsText(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	default:
		return time.Duration(ns).Round(10 * time.Microsecond).String()
	}
}

// gbs is a rate in GB/s: bytes per nanosecond.
func gbs(bytes int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(bytes) / float64(d)
}
