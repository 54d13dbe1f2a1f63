package proto_test

import (
	"fmt"
	"strings"
)

// page is a table of transitions. Its add leaves out a state that the line before has.
type page struct {
	lines  strings.Builder
	before string
}

// add adds one.
func (p *page) add(state, in, does, next string) {
	if state == p.before {
		state = ""
	} else {
		p.before = state
	}
	p.line(state, in, does, next)
}

// line adds one as it stands.
func (p *page) line(state, in, does, next string) {
	line := fmt.Sprintf("| %s | %s | %s | %s |\n", state, in, does, next)
	p.lines.WriteString(strings.ReplaceAll(line, "|  |", "| |"))
}

// does is the head of the column of what a device does.
const does = "what it does"

// table returns the lines below a head that names the input and the column after it.
func (p *page) table(input, then string) string {
	return "| state | " + input + " | " + then + " | next |\n|---|---|---|---|\n" + p.lines.String()
}
