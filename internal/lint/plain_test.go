package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A sentence of prose has a subject that it names, a verb and an object. These forms hide the subject
// behind a pronoun.
var plainRules = []struct {
	name string
	form *regexp.Regexp
}{
	{"sentence begins with a bare pronoun", regexp.MustCompile(`^(Who|What|Whoever|Whatever)\b[^?]*$`)},
	{"pronoun in place of a noun", regexp.MustCompile(
		`(?i)\b(whoever|(of|to|by|for|from|with|than|and|or|but|as|is|are|was|at|on|in|that|tells?|all|says?|one) who)\b`)},
}

// sentence is a sentence of prose and the line where it begins.
type sentence struct {
	text string
	line int
}

var (
	marker       = regexp.MustCompile(`^\s*(//+|/\*+|\*/|\*|#+|[-*] |\d+\. |>)\s?|\s*\*/\s*$`)
	itemBegins   = regexp.MustCompile(`^(\s*//)?\s*(- |\d+\. |#)`)
	sentenceEnd  = regexp.MustCompile(`[.!?]["')*]*(\s+|$)`)
	abbreviation = regexp.MustCompile(`\b(e\.g|i\.e|cf|vs|etc)\.\s*$`)
)

// sentences returns the sentences of a comment or a document. An empty line, a row of a table, an
// item of a list and a heading end one.
func sentences(text string) (all []sentence) {
	var now strings.Builder
	begin := 0
	flush := func() {
		if s := strings.TrimSpace(now.String()); s != "" {
			all = append(all, sentence{s, begin})
		}
		now.Reset()
	}
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(marker.ReplaceAllString(line, ""))
		if bare == "" || strings.HasPrefix(bare, "|") || itemBegins.MatchString(line) {
			flush()
		}
		for bare != "" {
			if now.Len() == 0 {
				begin = i + 1
			}
			end := sentenceEnd.FindStringIndex(bare)
			if end == nil || abbreviation.MatchString(bare[:end[1]]) {
				now.WriteString(bare + " ")
				break
			}
			now.WriteString(bare[:end[1]])
			bare = bare[end[1]:]
			flush()
		}
	}
	flush()
	return all
}

// notPlain lists the sentences of a file that break a rule.
func notPlain(f *file) (found []string) {
	text := comments
	switch {
	case f.isGenerated():
		return nil
	case strings.HasSuffix(f.path, ".md"):
		text = prose
	}
	all := text(f)
	if lower := strings.ToLower(all); !strings.Contains(lower, "who") && !strings.Contains(lower, "what") {
		return nil
	}
	for _, s := range sentences(all) {
		if lower := strings.ToLower(s.text); !strings.Contains(lower, "who") && !strings.HasPrefix(lower, "what") {
			continue // most sentences: the expressions are slow
		}
		for _, rule := range plainRules {
			if rule.form.MatchString(s.text) {
				found = append(found, fmt.Sprintf("%s:%d: %s: %s", f.path, s.line, rule.name, s.text))
			}
		}
	}
	return found
}

// notYetPlain are the folders that are still to be rewritten. A folder leaves the list with its last
// sentence; -v shows the sentences.
var notYetPlain = []string{
	"apps/", "bench/", "cmd/nfcommsd/", "cmd/nfctl/", "docs/design/", "docs/nfctl.md", "docs/performance.md",
	"internal/vmtest/c/first/", "internal/vmtest/events", "internal/vmtest/first_test.go", "pkg/nfcomms/",
}

func TestSentencesArePlain(t *testing.T) {
	for _, f := range tree(t, ".go", ".c", ".h", ".proto", ".md") {
		found := notPlain(f)
		if slices.ContainsFunc(notYetPlain, func(p string) bool { return strings.HasPrefix(f.path, p) }) {
			for _, s := range found {
				t.Log(s)
			}
			continue
		}
		report(t, found)
	}
}

func TestSentencesArePlainFinds(t *testing.T) {
	for text, finds := range map[string]string{
		"package p\n\n// Whatever is asked for is there.\nvar a int":                    "p.go:3",
		"package p\n\n// It is right. What it\n// has is more.\nvar a int":              "p.go:3: sentence begins",
		"package p\n\n// a goes to who asked.\nvar a int":                               "to who asked",
		"package p\n\n// a is for\n// whoever asked, e.g. others.\nvar a int":           "whoever asked",
		"package p\n\n// a is for the host:\n//   - one\n//   - all who ask\nvar a int": "all who",
	} {
		wantOne(t, notPlain(parseGo(t, "p.go", text)), finds)
	}
	for _, text := range []string{
		"# What is this?\n\nA host that asks has it. The user who started it may stop it.\n",
		"```\nWhat a listing.\n```\n",
	} {
		report(t, notPlain(&file{path: "p.md", text: text}))
	}
}
