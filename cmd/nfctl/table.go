package main

import (
	"strings"
	"unicode/utf8"
)

// tint is the meaning of a colour.
type tint int

const (
	plainTint tint = iota
	good
	warn
	bad
)

var tintCodes = [...]string{good: "\x1b[32m", warn: "\x1b[33m", bad: "\x1b[31m"}

// paint colours a text.
func (p *printer) paint(text string, t tint) string {
	if !p.color || t == plainTint {
		return text
	}
	return tintCodes[t] + text + "\x1b[0m"
}

// column is one column of a table over T.
type column[T any] struct {
	title string
	// right: numbers line up at their ends.
	right bool
	// wide: -o wide alone shows it.
	wide bool
	cell func(T) string
	// tint colours the cell; nil leaves it plain.
	tint func(T) tint
}

// writeTable writes rows under their titles, without the titles if this is a
// further record of a series.
func writeTable[T any](p *printer, columns []column[T], rows []T) {
	var shown []column[T]
	for _, c := range columns {
		if p.wide || !c.wide {
			shown = append(shown, c)
		}
	}
	cells, widths := layOut(shown, rows)
	if !p.again {
		line := make([]string, len(shown))
		for i, c := range shown {
			line[i] = pad(c.title, widths[i], c.right)
		}
		p.printf("%s\n", strings.TrimRight(strings.Join(line, "  "), " "))
	}
	for r, row := range rows {
		line := make([]string, len(shown))
		for i, c := range shown {
			colour := plainTint
			if c.tint != nil {
				colour = c.tint(row)
			}
			line[i] = p.padded(cells[r][i], widths[i], c.right, colour)
		}
		p.printf("%s\n", strings.TrimRight(strings.Join(line, "  "), " "))
	}
}

// layOut makes the cells and finds how wide the columns are.
func layOut[T any](columns []column[T], rows []T) (cells [][]string, widths []int) {
	widths = make([]int, len(columns))
	for i, c := range columns {
		widths[i] = utf8.RuneCountInString(c.title)
	}
	for _, row := range rows {
		line := make([]string, len(columns))
		for i, c := range columns {
			line[i] = c.cell(row)
			widths[i] = max(widths[i], utf8.RuneCountInString(line[i]))
		}
		cells = append(cells, line)
	}
	return cells, widths
}

func pad(text string, width int, right bool) string {
	space := strings.Repeat(" ", width-utf8.RuneCountInString(text))
	if right {
		return space + text
	}
	return text + space
}

// padded is pad with the text coloured, and the space not.
func (p *printer) padded(text string, width int, right bool, t tint) string {
	space := strings.Repeat(" ", width-utf8.RuneCountInString(text))
	if text == "" {
		return space
	}
	if right {
		return space + p.paint(text, t)
	}
	return p.paint(text, t) + space
}

// field is one line of a description.
type field struct {
	name, value string
	tint        tint
}

// writeFields writes a description: names, and values that line up.
func writeFields(p *printer, fields []field) {
	width := 0
	for _, f := range fields {
		width = max(width, utf8.RuneCountInString(f.name))
	}
	for _, f := range fields {
		p.printf("%s  %s\n", pad(f.name+":", width+1, false), p.paint(f.value, f.tint))
	}
}
