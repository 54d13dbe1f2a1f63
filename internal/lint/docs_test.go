package lint

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("(?s)\n```.*?\n```|`[^`\n]*`")
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// knownAnchors are the results of anchors: many links lead to one document.
var knownAnchors = make(map[string][]string)

// anchors returns the anchors of a document's headings.
func anchors(text string) []string {
	if list, is := knownAnchors[text]; is {
		return list
	}
	var list []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		s := notSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(s, " ", "-"))
	}
	knownAnchors[text] = list
	return list
}

// brokenLinks lists the relative links of a document that lead nowhere. open
// returns the text behind a path from the root; a folder has none.
func brokenLinks(f *file, open func(name string) (string, bool)) []string {
	var found []string
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(f.text, ""), -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		name, anchor, hasAnchor := strings.Cut(m[1], "#")
		text, ok := f.text, true
		if name != "" {
			text, ok = open(path.Join(path.Dir(f.path), name))
		}
		if !ok || hasAnchor && !slices.Contains(anchors(text), anchor) {
			found = append(found, fmt.Sprintf("%s: link %q leads nowhere", f.path, m[1]))
		}
	}
	return found
}

func openTree(name string) (string, bool) {
	name = filepath.Join("..", "..", filepath.FromSlash(name))
	if _, err := os.Stat(name); err != nil {
		return "", false
	}
	text, _ := os.ReadFile(name) // a folder has no text
	return string(text), true
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, f := range tree(t, ".md") {
		report(t, brokenLinks(f, openTree))
	}
}

// reached returns the documents that links lead to from one, itself included, in at most so many
// clicks.
func reached(from string, clicks int, open func(name string) (string, bool)) map[string]bool {
	found := map[string]bool{from: true}
	for next := []string{from}; clicks > 0; clicks-- {
		var more []string
		for _, name := range next {
			text, _ := open(name)
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
				to, _, _ := strings.Cut(m[1], "#")
				to = path.Join(path.Dir(name), to)
				if strings.HasSuffix(to, ".md") && !found[to] {
					found[to] = true
					more = append(more, to)
				}
			}
		}
		next = more
	}
	return found
}

// TestDocumentsAreReached: a reader of README finds each document in two clicks.
func TestDocumentsAreReached(t *testing.T) {
	found := reached("README.md", 2, openTree)
	for _, f := range tree(t, ".md") {
		if !found[f.path] {
			t.Errorf("%s: more than two clicks from README.md", f.path)
		}
	}
}

var (
	makeSpan   = regexp.MustCompile("`make +([a-z][a-z-]*)")
	makeLine   = regexp.MustCompile(`(?m)^make +([a-z][a-z-]*)`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// unknownTargets lists make targets that a document names and make lacks.
func unknownTargets(f *file, makefile string) []string {
	known := make(map[string]bool)
	for _, m := range makeTarget.FindAllStringSubmatch(makefile, -1) {
		known[m[1]] = true
	}
	var calls [][]string
	for i, part := range strings.Split(f.text, "\n```") {
		re := makeSpan
		if i%2 == 1 { // between fences
			re = makeLine
		}
		calls = append(calls, re.FindAllStringSubmatch(part, -1)...)
	}
	var found []string
	for _, m := range calls {
		if !known[m[1]] {
			found = append(found, fmt.Sprintf("%s: the Makefile has no target %q", f.path, m[1]))
		}
	}
	return found
}

func TestMakeTargetsExist(t *testing.T) {
	makefile := fileOf(t, "Makefile").text
	for _, f := range tree(t, ".md") {
		report(t, unknownTargets(f, makefile))
	}
}

var pointer = regexp.MustCompile("`([\\w./-]+\\.(?:go|c|h)):(\\w+(?:\\.\\w+)?)`")

// lostPointers lists the "file:function" references of a document to functions
// that are not there. A method is written Type.Method.
func lostPointers(f *file, open func(string) (string, bool)) []string {
	var found []string
	for _, m := range pointer.FindAllStringSubmatch(f.text, -1) {
		text, ok := open(m[1])
		name := m[2]
		if typ, method, is := strings.Cut(name, "."); is {
			name = method
			ok = ok && strings.Contains(text, typ)
		}
		defined := regexp.MustCompile(`(?m)^(func |[\w* ]+\b).*\b` + name + `(\[[^\]]*\])?\(`)
		if !ok || !defined.MatchString(text) {
			found = append(found, fmt.Sprintf("%s: %s is not there", f.path, m[0]))
		}
	}
	return found
}

func TestArchitecturePointsAtCode(t *testing.T) {
	f := fileOf(t, "ARCHITECTURE.md")
	report(t, lostPointers(f, openTree))
	if len(pointer.FindAllString(f.text, -1)) < 10 {
		t.Error("ARCHITECTURE.md names fewer than ten functions")
	}
}

// block returns the first code block of a language after a heading.
func block(t *testing.T, f *file, after, language string) string {
	t.Helper()
	_, text, ok := strings.Cut(f.text, after)
	if ok {
		_, text, ok = strings.Cut(text, "\n```"+language+"\n")
	}
	if ok {
		text, _, ok = strings.Cut(text, "\n```")
	}
	if !ok {
		t.Fatalf("%s has no %s block after %q", f.path, language, after)
	}
	return text + "\n"
}

// TestReadmeProgram compiles and runs the README's program, whose text is that
// of examples/hello and whose output is what the README shows.
func TestReadmeProgram(t *testing.T) {
	readme := fileOf(t, "README.md")
	program := block(t, readme, "### A first program", "go")
	_, example, _ := strings.Cut(fileOf(t, "examples/hello/main.go").text, "package main\n")
	if program != "package main\n"+example {
		t.Errorf("README.md and examples/hello/main.go differ")
	}
	lines := 0
	body := program[strings.Index(program, "func main()"):]
	for _, l := range strings.Split(body, "\n") {
		if strings.TrimSpace(l) != "" {
			lines++
		}
	}
	if lines > 15 {
		t.Errorf("the first program has %d lines, at most 15", lines)
	}
	name := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(name, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", name)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if want := block(t, readme, "### A first program", "text"); string(out) != want {
		t.Errorf("it prints %q, the README says %q", out, want)
	}
}

func TestDocumentRulesFind(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	some := func(string) (string, bool) { return "# A b\nfunc (x *T) There(", true }
	md := func(text string) *file { return &file{path: "docs/a.md", text: text} }

	wantOne(t, brokenLinks(md("[x](gone.md)"), none), "gone.md")
	wantOne(t, brokenLinks(md("[x](b.md#c)"), some), "b.md#c")
	report(t, brokenLinks(md("# X\n[x](b.md#a-b) [y](#x) [z](https://e.org) `a[b](c)`\n```\na[b](c)\n```\n"), some))

	far := func(name string) (string, bool) {
		return map[string]string{"README.md": "[a](docs/a.md)", "docs/a.md": "[b](b.md#x)", "docs/b.md": "[c](c.md)"}[name], true
	}
	if found := reached("README.md", 2, far); !found["docs/b.md"] || found["docs/c.md"] {
		t.Errorf("two clicks lead to %v", found)
	}

	wantOne(t, unknownTargets(md("`make gone`"), "test: x\n"), "gone")
	wantOne(t, unknownTargets(md("\n```sh\nmake gone\n```\n"), "test: x\n"), "gone")
	report(t, unknownTargets(md("they\nmake sure; `make test`\n```\nmake test\n```\n"), "test: x\n"))

	wantOne(t, lostPointers(md("`a/b.go:Gone`"), some), "Gone")
	wantOne(t, lostPointers(md("`a/b.go:There`"), none), "There")
	report(t, lostPointers(md("`a/b.go:T.There`"), some))
}
