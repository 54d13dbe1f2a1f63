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

// retiredIn lists the retired words of a file.
func retiredIn(f *file, r retired) (found []string) {
	note := func(line int, what, word, instead string) {
		found = append(found, fmt.Sprintf("%s:%d: %s: not %q, but %s", f.path, line, what, word, instead))
	}
	var all []name
	switch {
	case f.isGenerated():
		return nil
	case f.ast != nil:
		all = declared(f)
	case !strings.HasSuffix(f.path, ".md"):
		all = identifiers(f.text)
	}
	all = append(all, name{strings.TrimSuffix(path.Base(f.path), path.Ext(f.path)), 1})
	for _, n := range all {
		for _, w := range nameWords(n.text) {
			if instead := r.names[w]; instead != "" {
				note(n.line, n.text, w, instead)
			}
		}
	}
	for i, line := range strings.Split(f.remarks(), "\n") {
		for _, w := range strings.FieldsFunc(line, func(r rune) bool { return !isLetter(r) }) {
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
	rows := glossaryRow.FindAllStringSubmatch(words, -1)
	if len(rows) < 40 {
		t.Errorf("the glossary has %d words", len(rows))
	}
	unused := slices.DeleteFunc(slices.Clone(rows), func(row []string) bool { return row[1] == "word" })
	for _, f := range tree(t, ".go", ".c", ".h", ".md") {
		if f.path == "docs/glossary.md" || len(unused) == 0 {
			continue
		}
		text := strings.ToLower(f.text)
		unused = slices.DeleteFunc(unused, func(row []string) bool { return strings.Contains(text, row[1]) })
	}
	for _, row := range unused {
		t.Errorf("docs/glossary.md: %q has no use", row[1])
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
