package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape returns a text on one line that does nothing to a terminal: bytes of what is not
// printable as \xNN. Everything that a server, a device or a file says passes through it.
func escape(text string) string {
	if strings.IndexFunc(text, isUnprintable) < 0 {
		return text
	}
	var b strings.Builder
	for text != "" {
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			for _, c := range []byte(text[:n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		} else {
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String()
}

func isUnprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// painted is a text with colours of ours, whose rest is escaped.
type painted string

// outside is an argument of printf that may hold what somebody else says.
type outside struct{ v any }

// Format formats the argument, and escapes the outcome.
func (o outside) Format(f fmt.State, verb rune) {
	_, _ = io.WriteString(f, escape(fmt.Sprintf(fmt.FormatString(f, verb), o.v)))
}

// printf writes to the output. Arguments are escaped, but for bytes, which are written as they are.
func (p *printer) printf(format string, args ...any) {
	safe := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case painted, []byte, int: // an int may be a width
			safe[i] = a
		default:
			safe[i] = outside{a}
		}
	}
	fmt.Fprintf(p.w, format, safe...)
}

// escapeJSON writes JSON, or YAML with double quotes, whose strings may hold characters that a
// terminal acts on: escaped.
type escapeJSON struct{ w io.Writer }

// Write writes whole documents.
func (e escapeJSON) Write(b []byte) (int, error) {
	if strings.IndexFunc(string(b), needsEscape) < 0 {
		return e.w.Write(b)
	}
	var out strings.Builder
	for _, r := range string(b) {
		if needsEscape(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	_, err := io.WriteString(e.w, out.String())
	return len(b), err
}

// needsEscape finds the characters that JSON may hold and a terminal may act on; all are below
// U+10000.
func needsEscape(r rune) bool {
	return r == 0x7f || r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r)
}
