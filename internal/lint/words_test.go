package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired are the words of the second table of the glossary: what to say in
// their place, and where they must not stand.
type retired struct {
	names, prose map[string]string
}

var retiredRow = regexp.MustCompile(`(?m)^\| ([a-z, ]+) \| ([^|]+) \| (names|names, prose) \|$`)

// retiredWords reads the glossary.
func retiredWords(glossary string) retired {
	r := retired{map[string]string{}, map[string]string{}}
	_, table, _ := strings.Cut(glossary, "\n## Words that are not used\n")
	for _, row := range retiredRow.FindAllStringSubmatch(table, -1) {
		for _, word := range strings.Split(row[1], ", ") {
			r.names[word] = row[2]
			if strings.HasSuffix(row[3], "prose") {
				r.prose[word] = row[2]
			}
		}
	}
	return r
}

// wordOf matches a word of an identifier: fooBar, FooBAR, foo_bar and FOO_BAR are
// two words each.
var wordOf = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

// nameWords splits an identifier into words of small letters, and adds each pair
// of neighbours, for what is one word in two: getUp.
func nameWords(name string) []string {
	var words []string
	for _, w := range wordOf.FindAllString(name, -1) {
		// HTTPServer: the last capital begins the next word.
		if n := strings.IndexFunc(w, func(r rune) bool { return r >= 'a' }); n > 1 {
			words = append(words, strings.ToLower(w[:n-1]))
			w = w[n-1:]
		}
		words = append(words, strings.ToLower(w))
	}
	single := len(words)
	for i := 1; i < single; i++ {
		words = append(words, words[i-1]+words[i])
	}
	return words
}

// name is an identifier and where it is declared.
type name struct {
	text string
	line int
}

// declared lists what a Go file declares. Names that it only uses are declared elsewhere.
func declared(f *file) (names []name) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id != nil {
				names = append(names, name{id.Name, f.fset.Position(id.Pos()).Line})
			}
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.ValueSpec:
			add(n.Names...)
		case *ast.Field:
			add(n.Names...)
		case *ast.ImportSpec:
			add(n.Name)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, is := left.(*ast.Ident); is && n.Tok == token.DEFINE {
					add(id)
				}
			}
		case *ast.RangeStmt:
			for _, left := range []ast.Expr{n.Key, n.Value} {
				if id, is := left.(*ast.Ident); is && n.Tok == token.DEFINE {
					add(id)
				}
			}
		}
		return true
	})
	return names
}

var (
	cIdentifier = regexp.MustCompile(`\b[A-Za-z_]\w*`)
	lineComment = regexp.MustCompile(`//[^\n]*`)
	cString     = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|#include[^\n]*`)
)

// blanks replaces text by blanks and keeps its lines.
func blanks(text string) string { return notLineEnd.ReplaceAllString(text, " ") }

var notLineEnd = regexp.MustCompile(`[^\n]`)

// tokens lists the identifiers of C or a proto. Comments, strings and what is
// included are not among them.
func tokens(f *file) (names []name) {
	code := lineComment.ReplaceAllStringFunc(cComment.ReplaceAllStringFunc(f.text, blanks), blanks)
	for i, line := range strings.Split(cString.ReplaceAllStringFunc(code, blanks), "\n") {
		for _, id := range cIdentifier.FindAllString(line, -1) {
			names = append(names, name{id, i + 1})
		}
	}
	return names
}

// comments returns what a source file says in comments, everything else blank.
func comments(f *file) string {
	if f.ast != nil {
		lines := make([]string, strings.Count(f.text, "\n")+1)
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				for i, text := range strings.Split(c.Text, "\n") {
					lines[f.fset.Position(c.Pos()).Line-1+i] += text
				}
			}
		}
		return strings.Join(lines, "\n")
	}
	var out strings.Builder
	last := 0
	for _, at := range commentOf.FindAllStringIndex(f.text, -1) {
		out.WriteString(blanks(f.text[last:at[0]]))
		out.WriteString(f.text[at[0]:at[1]])
		last = at[1]
	}
	return out.String()
}

var commentOf = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)

// prose returns the sentences of a document, code left out.
func prose(f *file) string { return code.ReplaceAllStringFunc(f.text, blanks) }

var plainWord = regexp.MustCompile(`[A-Za-z]+`)

// retiredIn lists the retired words of a file.
func retiredIn(f *file, r retired) (found []string) {
	note := func(line int, what, word, instead string) {
		found = append(found, fmt.Sprintf("%s:%d: %s: not %q, but %s", f.path, line, what, word, instead))
	}
	ids, text := tokens, comments
	switch {
	case f.isGenerated():
		return nil
	case f.ast != nil:
		ids = declared
	case strings.HasSuffix(f.path, ".md"):
		ids, text = func(*file) []name { return nil }, prose
	}
	all := append(ids(f), name{strings.TrimSuffix(path.Base(f.path), path.Ext(f.path)), 1})
	for _, n := range all {
		for _, w := range nameWords(n.text) {
			if instead := r.names[w]; instead != "" {
				note(n.line, n.text, w, instead)
			}
		}
	}
	for i, line := range strings.Split(text(f), "\n") {
		for _, w := range plainWord.FindAllString(line, -1) {
			if instead := r.prose[strings.ToLower(w)]; instead != "" {
				note(i+1, "prose", w, instead)
			}
		}
	}
	return found
}

func TestWords(t *testing.T) {
	r := retiredWords(fileOf(t, "docs/glossary.md").text)
	if len(r.names) < 40 || len(r.prose) < 12 {
		t.Fatalf("the glossary retires %d names and %d words of prose", len(r.names), len(r.prose))
	}
	for _, f := range tree(t, ".go", ".c", ".h", ".proto", ".md") {
		if f.path != "docs/glossary.md" {
			report(t, retiredIn(f, r))
		}
	}
}

var glossaryRow = regexp.MustCompile(`(?m)^\| ([a-z ]+) \|`)

// TestGlossaryIsInUse: each word of the first table stands in a document or a
// comment elsewhere, so that the glossary defines no more than is said.
func TestGlossaryIsInUse(t *testing.T) {
	words, _, _ := strings.Cut(fileOf(t, "docs/glossary.md").text, "\n## Words that are not used\n")
	var all strings.Builder
	for _, f := range tree(t, ".go", ".c", ".h", ".md") {
		if f.path != "docs/glossary.md" {
			all.WriteString(strings.ToLower(f.text))
		}
	}
	text := all.String()
	rows := glossaryRow.FindAllStringSubmatch(words, -1)
	if len(rows) < 40 {
		t.Errorf("the glossary has %d words", len(rows))
	}
	for _, row := range rows {
		if row[1] != "word" && !strings.Contains(text, row[1]) {
			t.Errorf("docs/glossary.md: nobody says %q", row[1])
		}
	}
	if !slices.IsSortedFunc(rows[1:], func(a, b []string) int { return strings.Compare(a[1], b[1]) }) {
		t.Error("docs/glossary.md: the words are not in order")
	}
}

func TestWordsFind(t *testing.T) {
	r := retiredWords("\n## Words that are not used\n\n| not | but | in |\n|---|---|---|\n" +
		"| box, boxes | mailbox | names |\n| getup | unpark | names |\n| ladder | escalate | names, prose |\n| life | epoch | names |\n")
	for _, c := range []struct{ path, text, finds string }{
		{"p/p.go", "package p\nfunc newBox() {}", "newBox"},
		{"p/p.go", "package p\ntype t struct{ oldBOX int }", "oldBOX"},
		{"p/p.go", "package p\nfunc f(boxes int) {}", "boxes"},
		{"p/p.go", "package p\nfunc f() { life := 1; _ = life }", "life"},
		{"p/p.go", "package p\nfunc f() { for _, box := range x {} }", "box"},
		{"p/p.go", "package p\nfunc getUp() {}", "getUp"},
		{"p/p.go", "package p\n\n// f climbs\n// the ladder.\nfunc f() {}", "p.go:4"},
		{"p/box.go", "package p", "box"},
		{"p/p.c", "int nfc_box_take(void);", "nfc_box_take"},
		{"p/p.c", "/* a\n * ladder */", "p.c:2"},
		{"p/p.proto", "uint32 life_time = 1; // the\n", "life_time"},
		{"docs/p.md", "A ladder.", "ladder"},
	} {
		f := &file{path: c.path, text: c.text}
		if strings.HasSuffix(c.path, ".go") {
			f = parseGo(t, c.path, c.text)
		}
		wantOne(t, retiredIn(f, r), c.finds)
	}
	fine := "package p\n\n// A sandbox has a life.\nfunc Sandbox(mailbox, lifetime int) { x.Box = theirs.Life(mailbox) }"
	report(t, retiredIn(parseGo(t, "p/p.go", fine), r))
	report(t, retiredIn(&file{path: "p/p.c", text: "#include <box.h>\nint a = f(\"box\", 'b'); // box\n"}, r))
	report(t, retiredIn(&file{path: "docs/p.md", text: "`ladder`\n```\nladder\n```\nboxes\n"}, r))
}

func TestNameWords(t *testing.T) {
	for text, want := range map[string][]string{
		"fooBar": {"foo", "bar", "foobar"}, "HTTPServer": {"http", "server", "httpserver"}, "NFC_BOX": {"nfc", "box", "nfcbox"},
		"x": {"x"}, "getUpNow": {"get", "up", "now", "getup", "upnow"}, "a1b": {"a", "b", "ab"},
	} {
		if got := nameWords(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
