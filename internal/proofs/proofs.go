package proofs

import (
	"fmt"
	"regexp"
	"strings"
)

// Suite is the test that runs the conformance suite, in every package of
// BackEnds.
const Suite = "TestConformance"

// BackEnds are the folders whose tests run the whole suite.
var BackEnds = []string{"internal/sim", "internal/kdev"}

// scriptedFolder is where the tests against the scripted device lie.
const scriptedFolder = "internal/scripted"

// Test is one proof of a rule.
type Test struct {
	Folder string // "" for a subtest of the suite
	Name   string
}

// String returns the test as the table writes it.
func (t Test) String() string {
	if t.Folder == "" || t.Folder == scriptedFolder {
		return t.Name
	}
	return t.Folder + ":" + t.Name
}

// Run is a test as go test names it, in a folder of the tree.
type Run struct{ Folder, Name string }

// Runs lists what must have passed for the test to have passed.
func (t Test) Runs() []Run {
	if t.Folder != "" {
		return []Run{{t.Folder, t.Name}}
	}
	var all []Run
	for _, folder := range BackEnds {
		all = append(all, Run{folder, Suite + "/" + t.Name})
	}
	return all
}

// Rule is one promise and its proofs.
type Rule struct {
	Name  string // "S7", or "S42a"
	Tests []Test
}

var (
	rule = regexp.MustCompile(`(?m)^\*\*S((\d+)([a-z]?))\.`)
	row  = regexp.MustCompile(`(?m)^\| S(\d+[a-z]?) \| (.+) \|$`)
	ref  = regexp.MustCompile("`(?:([\\w./]+):)?([\\w./-]+)`")
)

// after returns the letter of the rule that follows one with this letter: S42, S42a, S42b.
func after(letter string) string {
	if letter == "" {
		return "a"
	}
	return string(letter[0] + 1)
}

// Read returns the rules of a document in their order, and what is wrong with
// it: a rule out of order or without a test, or a row without a rule.
func Read(text string) (rules []Rule, wrong []string) {
	rows := make(map[string]string)
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		if _, twice := rows[m[1]]; twice {
			wrong = append(wrong, fmt.Sprintf("rule S%s has two rows", m[1]))
		}
		rows[m[1]] = m[2]
	}
	number, letter := 0, ""
	for _, m := range rule.FindAllStringSubmatch(text, -1) {
		if m[2] != fmt.Sprint(number+1) || m[3] != "" {
			letter = after(letter)
			if m[2] != fmt.Sprint(number) || m[3] != letter {
				wrong = append(wrong, fmt.Sprintf("rule S%s stands after rule S%d", m[1], number))
			}
		} else {
			number, letter = number+1, ""
		}
		r := Rule{Name: "S" + m[1]}
		for _, t := range ref.FindAllStringSubmatch(rows[m[1]], -1) {
			if t[1] == "" && strings.HasPrefix(t[2], "Test") {
				t[1] = scriptedFolder
			}
			r.Tests = append(r.Tests, Test{t[1], t[2]})
		}
		if len(r.Tests) == 0 {
			wrong = append(wrong, fmt.Sprintf("rule %s names no test", r.Name))
		}
		rules = append(rules, r)
		delete(rows, m[1])
	}
	for number := range rows {
		wrong = append(wrong, fmt.Sprintf("there is no rule S%s for its row", number))
	}
	if len(rules) == 0 {
		wrong = append(wrong, "there are no rules")
	}
	return rules, wrong
}
