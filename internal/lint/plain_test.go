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

// bareLine takes the mark of a comment, an item, a heading or a quotation off a line.
func bareLine(line string) string {
	line = strings.TrimSuffix(strings.TrimSpace(line), "*/")
	line = strings.TrimSpace(line)
	for _, mark := range []string{"//", "/*", "*", "#", ">", "- "} {
		if rest, is := strings.CutPrefix(line, mark); is {
			return strings.TrimSpace(strings.TrimLeft(rest, mark[len(mark)-1:]))
		}
	}
	return strings.TrimSpace(line[numeral(line):])
}

// numeral returns the number of bytes of the number of an item, "12. ", that a line begins with.
func numeral(line string) int {
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits > 0 && strings.HasPrefix(line[digits:], ". ") {
		return digits + 2
	}
	return 0
}

// beginsItem reports whether a line begins an item of a list, also of kernel-doc, or is a heading.
func beginsItem(line string) bool {
	line = strings.TrimSpace(line)
	if rest, is := strings.CutPrefix(line, "//"); is {
		line = strings.TrimSpace(rest)
	}
	return strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "* @") || numeral(line) > 0
}

// endOfSentence returns the number of bytes of a line's first sentence and of what follows it up to
// the next, 0 if the line ends none.
func endOfSentence(line string) int {
	for at := 0; ; {
		i := strings.IndexAny(line[at:], ".!?")
		if i < 0 {
			return 0
		}
		at += i + 1
		rest := strings.TrimLeft(line[at:], `"')*`)
		next := strings.TrimLeft(rest, " \t")
		if next == "" || len(next) < len(rest) {
			return len(line) - len(next)
		}
	}
}

// abbreviated reports whether the point at the end of a text is that of an abbreviation.
func abbreviated(text string) bool {
	text = strings.TrimSpace(text)
	for _, word := range []string{"e.g.", "i.e.", "cf.", "vs.", "etc."} {
		if before, is := strings.CutSuffix(text, word); is {
			return before == "" || !isLetter(rune(before[len(before)-1]))
		}
	}
	return false
}

// isCode reports whether a line of a comment is code, or a row of a table in spaces.
func isCode(line string) bool {
	line = strings.TrimLeft(line, " \t\v")
	return strings.HasPrefix(line, "//\t") || strings.HasPrefix(line, "*\t")
}

// isRow reports whether a text is a row of a table of Markdown.
func isRow(text string) bool { return strings.HasPrefix(text, "|") }

// sentences returns the sentences of a comment or a document. An empty line, code, an item of a list,
// a heading, and the beginning of a comment in C end one.
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
		bare := bareLine(line)
		if bare == "" || isCode(line) || isRow(bare) || beginsItem(line) || line[0] == '\v' || strings.HasPrefix(strings.TrimSpace(line), "/*") {
			flush()
		}
		if isCode(line) {
			continue
		}
		for bare != "" {
			if now.Len() == 0 {
				begin = i + 1
			}
			end := endOfSentence(bare)
			if end == 0 || abbreviated(bare[:end]) {
				now.WriteString(bare + " ")
				break
			}
			now.WriteString(bare[:end])
			bare = bare[end:]
			flush()
		}
		if strings.HasSuffix(line, "\v") || isRow(bare) {
			flush()
		}
	}
	flush()
	return all
}

// notPlain lists the sentences of a file that break a rule.
func notPlain(f *file) (found []string) {
	if f.isGenerated() || strings.HasPrefix(f.path, frozen) {
		return nil
	}
	all := f.remarks()
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

// frozen are headers of older ioctl interfaces, which no change may touch.
const frozen = "internal/vmtest/c/interface2/"

func TestSentencesArePlain(t *testing.T) {
	for _, f := range tree(t, ".go", ".c", ".h", ".proto", ".md") {
		report(t, notPlain(f))
	}
}

// notYetShort are the folders with sentences of more than mostWords words. A folder leaves the list
// with its last one.
var notYetShort = []string{
	"ARCHITECTURE.md", "CHANGELOG.md", "README.md", "SECURITY.md", "apps/", "bench/", "cmd/nfcommsd/", "cmd/nfsim/", "docs/", "examples/",
	"internal/beside/", "internal/fdpass/", "internal/firmware/", "internal/kdev/", "internal/lint/", "internal/logqueue/",
	"internal/mesh/", "internal/mirror/", "internal/model/", "internal/nodes/", "internal/prom/", "internal/proofs/", "internal/proto/",
	"internal/scripted/", "internal/shm/", "internal/shmwire/", "internal/sim/", "internal/stamp/", "internal/testrun/", "internal/vfio/",
	"internal/vmtest/", "pkg/group/", "pkg/nfcomms/", "spec/",
}

// mostWords is the number of words that a sentence may have.
const mostWords = 30

// longSentences lists the sentences of a file with too many words. Rows of tables and code have none.
func longSentences(f *file) (found []string) {
	if f.isGenerated() || strings.HasPrefix(f.path, frozen) {
		return nil
	}
	for _, s := range sentences(f.remarks()) {
		words := slices.DeleteFunc(strings.Fields(s.text), func(w string) bool { return strings.IndexFunc(w, isLetter) < 0 })
		if len(words) > mostWords && !isRow(s.text) {
			found = append(found, fmt.Sprintf("%s:%d: %d words in a sentence, at most %d: %s", f.path, s.line, len(words), mostWords, s.text))
		}
	}
	return found
}

func TestSentencesAreShort(t *testing.T) {
	for _, f := range tree(t, ".go", ".c", ".h", ".proto", ".md") {
		found := longSentences(f)
		if slices.ContainsFunc(notYetShort, func(p string) bool { return strings.HasPrefix(f.path, p) }) {
			for _, s := range found {
				if testing.Verbose() {
					t.Log(s)
				}
			}
			continue
		}
		report(t, found)
	}
}

func TestSentencesAreShortFinds(t *testing.T) {
	ten := strings.Repeat(" a word", 5)
	long := "It has" + ten + ten + ten + "."
	wantOne(t, longSentences(parseGo(t, "p.go", "package p\n\n// "+long+"\nvar a int")), "32 words")
	wantOne(t, longSentences(&file{path: "p.c", text: "int a; /* It has" + ten + "\n" + ten + ten + " */"}), "p.c:1")
	wantOne(t, longSentences(&file{path: "p.md", text: long}), "32 words")
	short := "It has" + ten + ten
	for _, f := range []*file{
		parseGo(t, "p.go", "package p\n\nvar (\n\ta int // "+short+"\n\t// "+short+"\n\tb int\n)"),
		parseGo(t, "p.go", "package p\n\n// Code:\n//\n//\t"+long+"\nvar a int"),
		{path: "p.c", text: "int a; /* " + short + " */\nint b; /* " + short + "\n */"},
		{path: "p.md", text: "- " + short + "\n- " + short + "\n\n| " + long + " |\n"},
	} {
		report(t, longSentences(f))
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
