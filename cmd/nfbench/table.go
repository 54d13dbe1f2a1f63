package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is text in columns: the first is flush left, the others flush right.
type table struct {
	head []string
	rows [][]string
}

func newTable(head ...string) *table { return &table{head: head} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write prints the table; cells beyond the head are dropped.
func (t *table) write(w io.Writer) {
	width := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i := range min(len(row), len(width)) {
			width[i] = max(width[i], utf8.RuneCountInString(row[i]))
		}
	}
	t.line(w, t.head, width)
	for _, row := range t.rows {
		t.line(w, row, width)
	}
}

func (t *table) line(w io.Writer, row []string, width []int) {
	var b strings.Builder
	for i := range min(len(row), len(width)) {
		pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(row[i]))
		if i == 0 {
			b.WriteString(row[i] + pad)
		} else {
			b.WriteString("  " + pad + row[i])
		}
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}

// table writes the first lines of every report.
func (h Header) table(w io.Writer) {
	fmt.Fprintf(w, "device: %s (%s, %s), islands %d, window %d\n",
		h.Device.Address, h.Device.Label, h.Device.Driver, h.Device.Islands, h.Device.Window)
	fmt.Fprintf(w, "host: %s, %d CPUs, %s/%s, %s, load %.2f\n\n",
		h.Machine.CPU, h.Machine.CPUs, h.Machine.OS, h.Machine.Arch, h.Machine.Go, h.Machine.Load1)
}
