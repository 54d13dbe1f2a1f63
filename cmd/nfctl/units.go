package main

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

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
