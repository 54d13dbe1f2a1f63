package main

import (
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/internal/units"
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
	return units.Duration(*s * 1e9)
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
