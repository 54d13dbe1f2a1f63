package texttable

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Column is a column's title.
type Column struct {
	Title string
	// Right: the cells line up at their ends, as numbers do.
	Right bool
}

// Table is rows of cells. A row may have fewer cells than there are columns;
// what it has more is dropped.
type Table struct {
	Columns []Column
	Rows    [][]string
	// NoHead leaves the titles out. They count for the width.
	NoHead bool
	// Paint returns a cell with what colours it, which takes no space; nil
	// leaves it as it is.
	Paint func(row, column int, cell string) string
}

// Numbers makes a table whose first column is text, and the others numbers.
func Numbers(titles ...string) *Table {
	t := &Table{}
	for i, title := range titles {
		t.Columns = append(t.Columns, Column{Title: title, Right: i > 0})
	}
	return t
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write writes the table, two spaces between columns.
func (t *Table) Write(w io.Writer) {
	head := make([]string, len(t.Columns))
	width := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		head[i], width[i] = c.Title, utf8.RuneCountInString(c.Title)
	}
	for _, row := range t.Rows {
		for i := range min(len(row), len(width)) {
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
	}
	if !t.NoHead {
		t.line(w, head, width, func(_ int, cell string) string { return cell })
	}
	for r, row := range t.Rows {
		t.line(w, row, width, func(i int, cell string) string {
			if t.Paint == nil || cell == "" {
				return cell
			}
			return t.Paint(r, i, cell)
		})
	}
}

func (t *Table) line(w io.Writer, row []string, width []int, paint func(column int, cell string) string) {
	line := make([]string, min(len(row), len(width)))
	for i := range line {
		line[i] = pad(row[i], width[i], t.Columns[i].Right, func(cell string) string { return paint(i, cell) })
	}
	fmt.Fprintln(w, strings.TrimRight(strings.Join(line, "  "), " "))
}

// pad fills a cell up to a width with spaces, which are not painted.
func pad(cell string, width int, right bool, paint func(string) string) string {
	space := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(cell)))
	if right {
		return space + paint(cell)
	}
	return paint(cell) + space
}
