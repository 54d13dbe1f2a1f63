package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Words that mean unfinished work, and paths of one machine. They are put
// together from pieces so that this file does not contain them.
var (
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b|(?i)\bnot ` + `implemented\b`)
	machine    = regexp.MustCompile(`(^|[^\w./-])/(wo` + `rk|ho` + `me|ro` + `ot)/`)
	hosts      = regexp.MustCompile(`(?i)\b(proxy|registry|deb|index)\.[a-z]+\.(org|com|io)\b`)
	skipped    = regexp.MustCompile(`\bt\.Skip(f|Now)?\(`)
)

// suspects are pieces of text, in lower case: a line that is not to be there
// has one of them. To look for them first is a tenth of the work.
var suspects = []string{"to" + "do", "fix" + "me", "xx" + "x", "implemented", "/wo" + "rk/", "/ho" + "me/", "/ro" + "ot/", "proxy.", "registry.", "deb.", "index."}

// forbidden lists the lines of a file that must not be there.
func forbidden(f *file) []string {
	var found []string
	for i, line := range strings.Split(f.text, "\n") {
		if strings.TrimRight(line, " \t") != line && !strings.HasSuffix(f.path, ".md") { // Markdown gives them a meaning
			found = append(found, fmt.Sprintf("%s:%d: trailing space: %s", f.path, i+1, line))
		}
		lower := strings.ToLower(line)
		if !slices.ContainsFunc(suspects, func(s string) bool { return strings.Contains(lower, s) }) {
			continue
		}
		for what, re := range map[string]*regexp.Regexp{
			"unfinished work": unfinishedIn(f),
			"a machine path":  machine,
			"a registry host": hosts,
		} {
			if re != nil && re.MatchString(line) {
				found = append(found, fmt.Sprintf("%s:%d: %s: %s", f.path, i+1, what, line))
			}
		}
	}
	return found
}

// unfinishedIn returns the rule for unfinished work; generated servers say of
// methods that nobody wrote that they are missing.
func unfinishedIn(f *file) *regexp.Regexp {
	if f.isGenerated() {
		return nil
	}
	return unfinished
}

func TestNoForbiddenText(t *testing.T) {
	for _, f := range tree(t, suffixes...) {
		report(t, forbidden(f))
	}
}

// TestSkipsAreListed holds the list of allowed skips to the tests that skip.
func TestSkipsAreListed(t *testing.T) {
	list := fileOf(t, ".ci/skips").text
	for _, f := range tree(t, "_test.go") {
		if f.dir() == "internal/lint" || !strings.Contains(f.text, "t.Skip") || !skipped.MatchString(f.text) {
			continue
		}
		if !strings.Contains(list, module+f.dir()+" ") {
			t.Errorf("%s skips a test, and .ci/skips lists none of %s", f.path, f.dir())
		}
	}
}

func TestForbiddenFinds(t *testing.T) {
	for _, line := range []string{
		"// TO" + "DO: later",
		"/* FIX" + "ME */",
		"return errors.New(\"not " + "implemented\")",
		"see /wo" + "rk/main",
		"cd /ro" + "ot/x",
		"from proxy." + "golang.org",
		"x ",
	} {
		wantOne(t, forbidden(&file{path: "a.go", text: line}), line)
	}
	report(t, forbidden(&file{path: "a.go", text: "path/work/x and ./home/x"}))
}
