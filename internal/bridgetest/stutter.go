package bridgetest

import "strings"

// Stutter returns the part of an error's text that begins by saying again how the
// text, or a part before it, begins or ends; "" if there is none. Parts are what
// colons separate.
func Stutter(text string) string {
	parts := strings.Split(text, ": ")
	verb, _, _ := strings.Cut(text, " ")
	for i, part := range parts[1:] {
		if part == verb || strings.HasPrefix(part, verb+" ") {
			return part
		}
		for _, before := range parts[:i+1] {
			if part == before || strings.HasSuffix(before, " "+part) || strings.HasPrefix(part, before+" ") {
				return part
			}
		}
	}
	return ""
}
