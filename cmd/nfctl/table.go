package main

import (
	"slices"
	"unicode/utf8"

	"github.com/nfcomms/nfcomms/internal/texttable"
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

// paint escapes and colours a text.
func (p *printer) paint(text string, t tint) painted {
	text = escape(text)
	if !p.color || t == plainTint {
		return painted(text)
	}
	return painted(tintCodes[t] + text + "\x1b[0m")
}

// column is one column of a table over T.
type column[T any] struct {
	title string
	// right: numbers line up at their ends.
	right bool
	// wide: -o wide alone shows it.
	wide bool
	// spare columns are left out of a table that is too wide, the highest first; 0 never is.
	spare int
	cell  func(T) string
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
	shown = fit(p.columns, shown, rows)
	t := &texttable.Table{NoHead: p.again, Paint: func(row, i int, cell string) string {
		if shown[i].tint == nil {
			return cell
		}
		return string(p.paint(cell, shown[i].tint(rows[row])))
	}}
	for _, c := range shown {
		t.Columns = append(t.Columns, texttable.Column{Title: c.title, Right: c.right})
	}
	for _, row := range rows {
		cells := make([]string, len(shown))
		for i, c := range shown {
			cells[i] = escape(c.cell(row))
		}
		t.Add(cells...)
	}
	t.Write(p.w)
}

// fit leaves columns out until a table has a width; 0 is any.
func fit[T any](width int, columns []column[T], rows []T) []column[T] {
	for width > 0 && tableWidth(columns, rows) > width {
		least := 0
		for i, c := range columns {
			if c.spare > columns[least].spare {
				least = i
			}
		}
		if columns[least].spare == 0 {
			break
		}
		columns = slices.Delete(columns, least, least+1)
	}
	return columns
}

// tableWidth is the width of a table, with two spaces between columns.
func tableWidth[T any](columns []column[T], rows []T) int {
	sum := -2
	for _, c := range columns {
		width := utf8.RuneCountInString(c.title)
		for _, row := range rows {
			width = max(width, utf8.RuneCountInString(escape(c.cell(row))))
		}
		sum += width + 2
	}
	return sum
}

// field is one line of a description.
type field struct {
	name, value string
	tint        tint
}

// writeFields writes a description: names, and values that line up.
func writeFields(p *printer, fields []field) {
	t := &texttable.Table{Columns: make([]texttable.Column, 2), NoHead: true, Paint: func(row, i int, cell string) string {
		if i == 0 {
			return cell
		}
		return string(p.paint(cell, fields[row].tint))
	}}
	for _, f := range fields {
		t.Add(escape(f.name)+":", escape(f.value))
	}
	t.Write(p.w)
}
