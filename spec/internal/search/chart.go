package search

import (
	"fmt"
	"regexp"
	"strings"
)

// Lines of a replay: a process sends or takes a message, or prints one for the chart.
var (
	lineStep = regexp.MustCompile(`^\s*\d+:\s+proc\s+(\d+) \(([a-z_:]+):\d+\)`)
	lineSend = regexp.MustCompile(`Send (\S+)\s+-> queue \d+ \(([\w\[\]]+)\)`)
	lineTake = regexp.MustCompile(`Recv (\S+)\s+<- queue \d+ \(([\w\[\]]+)\)`)
	lineSaid = regexp.MustCompile(`^\s*MSC: (.*)$`)
	lineNote = regexp.MustCompile(`\[printf\('MSC: (.*)\\n'(?:,\(?(\w+)\)?)?\)\]`)
)

// event is a line of a chart.
type event struct{ process, text string }

// chart draws a replay of SPIN's as a message sequence chart: a column for each process, time runs
// downwards. "→" puts a message into a ring, "←" takes it out of one.
func chart(replay, why string) string {
	var events []event
	said := ""
	for line := range strings.SplitSeq(replay, "\n") {
		if m := lineSaid.FindStringSubmatch(line); m != nil {
			said = m[1]
			continue
		}
		step := lineStep.FindStringSubmatch(line)
		if step == nil {
			continue
		}
		name := strings.Trim(step[2], ":")
		if step[1] != "" && strings.Count(replay, "proc") > 0 && multiple(replay, name) {
			name += " " + step[1]
		}
		switch send, take := lineSend.FindStringSubmatch(line), lineTake.FindStringSubmatch(line); {
		case send != nil:
			events = append(events, event{name, "→ " + message(send[1])})
		case take != nil:
			events = append(events, event{name, "← " + message(take[1])})
		case said != "" && lineNote.MatchString(line):
			events = append(events, event{name, said})
			said = ""
		}
	}
	return draw(events, why)
}

// multiple reports whether several processes have a name.
func multiple(replay, name string) bool {
	ids := map[string]bool{}
	for line := range strings.SplitSeq(replay, "\n") {
		if m := lineStep.FindStringSubmatch(line); m != nil && strings.Trim(m[2], ":") == name {
			ids[m[1]] = true
		}
	}
	return len(ids) > 1
}

// message writes a message as TYPE(a, b).
func message(fields string) string {
	name, rest, _ := strings.Cut(fields, ",")
	return name + "(" + strings.ReplaceAll(rest, ",", ", ") + ")"
}

// draw draws the events.
func draw(events []event, why string) string {
	var names []string
	width := map[string]int{}
	for _, e := range events {
		if width[e.process] == 0 {
			names = append(names, e.process)
		}
		width[e.process] = max(width[e.process], len([]rune(e.text)), len(e.process))
	}
	var b strings.Builder
	row := func(cell func(name string) string) {
		var line strings.Builder
		for _, n := range names {
			c := cell(n)
			line.WriteString(c + strings.Repeat(" ", width[n]+3-len([]rune(c))))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	row(func(n string) string { return n })
	for _, e := range events {
		row(func(n string) string {
			if n == e.process {
				return e.text
			}
			return "│"
		})
	}
	fmt.Fprintf(&b, "\n%s\n", why)
	return b.String()
}
