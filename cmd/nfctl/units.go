package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// units of a table; the other formats give plain numbers in base units.
var (
	binary  = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	decimal = []string{"", "k", "M", "G", "T", "P", "E"}
)

// scaled writes a value with three digits or more and the unit that fits.
func scaled(v, base float64, names []string, gap string) string {
	i := 0
	for ; v >= base && i < len(names)-1; i++ {
		v /= base
	}
	text := strconv.FormatFloat(v, 'f', digits(v), 64)
	if names[i] == "" {
		return text
	}
	return text + gap + names[i]
}

// digits is the number of decimals that a table shows.
func digits(v float64) int {
	switch {
	case v == math.Trunc(v) || v >= 100:
		return 0
	case v >= 10:
		return 1
	}
	return 2
}

func bytesText(v float64) string { return scaled(v, 1024, binary, " ") }
func countText(v float64) string { return scaled(v, 1000, decimal, "") }

func number[T ~int | ~int32 | ~int64 | ~uint32 | ~uint64](v T) string { return fmt.Sprint(v) }

// secondsOrNil is a duration, nil if there is none.
func secondsOrNil(d *durationpb.Duration) *float64 {
	if d == nil {
		return nil
	}
	s := seconds(d)
	return &s
}

// secondsText writes a duration in the unit that fits; nil is unknown.
func secondsText(s *float64) string {
	if s == nil {
		return "-"
	}
	d := time.Duration(*s * float64(time.Second))
	switch {
	case d < 10*time.Microsecond:
		return d.Round(10 * time.Nanosecond).String()
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Nanosecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// yesNo writes a truth for a person.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// orDash writes something for what is not there.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
