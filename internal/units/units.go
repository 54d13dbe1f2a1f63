package units

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// sizes are units of bytes; a suffix that ends like another stands before it, and
// of those that write a size exactly the first is taken.
var sizes = []struct {
	suffix string
	bytes  uint64
}{
	{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// ParseBytes reads "56", "64KiB", "1.5 MiB" or "20MB" as bytes.
func ParseBytes(text string) (uint64, error) {
	number, scale := strings.TrimSpace(text), uint64(1)
	for _, u := range sizes {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, scale = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	if n, err := strconv.ParseUint(number, 10, 64); err == nil {
		if high, low := bits.Mul64(n, scale); high == 0 {
			return low, nil
		}
	} else if whole, part, ok := strings.Cut(number, "."); ok && digitsOnly(whole) && digitsOnly(part) {
		const exact = 1 << 53
		v, _ := strconv.ParseFloat(number, 64) // +Inf is out of range, too
		if v *= float64(scale); v <= exact && v == math.Trunc(v) {
			return uint64(v), nil
		}
	}
	return 0, fmt.Errorf("%q is not a number of bytes such as 56, 64KiB or 20MB", text)
}

func digitsOnly(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Exact writes bytes in the largest unit that needs no fraction: "64 KiB".
func Exact(n uint64) string {
	for _, u := range sizes {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.suffix)
		}
	}
	return "0 B"
}

// Option is Exact as options and flags write it: "64KiB".
func Option(n uint64) string { return strings.ReplaceAll(Exact(n), " ", "") }

// Bytes writes bytes with three digits or more: "1.50 MiB".
func Bytes(v float64) string {
	return Scaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")
}

// Count writes a number with three digits or more: "1.50M".
func Count(v float64) string { return Scaled(v, 1000, "", "k", "M", "G", "T", "P", "E") }

// Duration writes nanoseconds with three digits or more: "1.50 µs"; two minutes and more to the
// second: "2m5s".
func Duration(ns float64) string {
	if ns >= float64(2*time.Minute) {
		return time.Duration(ns).Round(time.Second).String()
	}
	return Scaled(ns, 1000, " ns", " µs", " ms", " s")
}

// Scaled writes a value with three digits or more and the name that fits: each is
// for values base times as large as those of the one before.
func Scaled(v, base float64, names ...string) string {
	i := 0
	for ; v >= base && i < len(names)-1; i++ {
		v /= base
	}
	decimals := 2
	switch {
	case v == math.Trunc(v) || v >= 100:
		decimals = 0
	case v >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + names[i]
}
