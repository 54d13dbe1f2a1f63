package lint

import (
	"bytes"
	"flag"
	"go/ast"
	"go/printer"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the calls of testdata/api")

// goCalls returns the functions and methods of a file that others can call, one a line.
func goCalls(f *file) (calls []string) {
	for _, d := range f.ast.Decls {
		if d, ok := d.(*ast.FuncDecl); ok && d.Name.IsExported() && exportedReceiver(d) {
			var b bytes.Buffer
			// Writing to memory does not fail.
			_ = printer.Fprint(&b, token.NewFileSet(), &ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})
			calls = append(calls, line(b.String()))
		}
	}
	return calls
}

var prototype = regexp.MustCompile(`(?m)^(?:NFCOMMS_API )?[a-z][a-z0-9_ ]* \*?[a-z0-9_]+\([^;{}]*\);`)

// cCalls returns the prototypes of a header, one a line.
func cCalls(f *file) (calls []string) {
	code, _ := scan(f.text)
	for _, p := range prototype.FindAllString(code, -1) {
		calls = append(calls, line(p))
	}
	return calls
}

func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestCallsStay: the calls that programs are written against, in Go, in C and on the device, keep
// their names and parameters. One that is new is added by -update; to change or remove one breaks
// programs, which the changelog says.
func TestCallsStay(t *testing.T) {
	calls := map[string][]string{}
	for _, f := range tree(t, ".go") {
		if f.dir() == "pkg/nfcomms" && !f.isTest() {
			calls["go"] = append(calls["go"], goCalls(f)...)
		}
	}
	calls["c"] = cCalls(fileOf(t, "kmod/lib/libnfcomms.h"))
	calls["device"] = cCalls(fileOf(t, "firmware/nfc_fw.h"))
	for of, have := range calls {
		slices.Sort(have)
		golden := path.Join("testdata/api", of+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(strings.Join(slices.Compact(have), "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		for want := range strings.Lines(string(text)) {
			if want = strings.TrimSpace(want); !slices.Contains(have, want) {
				t.Errorf("%s: gone or changed: %s", golden, want)
			}
		}
	}
}

func TestCallsFinds(t *testing.T) {
	f := parseGo(t, "p/p.go", "package p\n// D does.\nfunc (t *T) D(a int,\n\tb ...any) error { return nil }\nfunc d() {}\nfunc (t t) D() {}\n")
	if got, want := strings.Join(goCalls(f), "|"), "func (t *T) D(a int, b ...any) error"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	h := &file{path: "h.h", text: "/* int no(void); */\nint nfcomms_a(struct x *x,\n\t      int n);\nconst char *b(void);\n#define c(x) x->c\n"}
	if got, want := strings.Join(cCalls(h), "|"), "int nfcomms_a(struct x *x, int n);|const char *b(void);"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
