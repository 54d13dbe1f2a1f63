package lint

import (
	"fmt"
	"go/ast"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/proofs"
	"github.com/nfcomms/nfcomms/internal/support"
)

// unproven lists what is wrong with the proofs of semantics.md: rules without a
// test, and tests that nothing would run. has reports whether go test finds a
// test in a folder; suite are the cases of the conformance suite.
func unproven(f *file, has func(folder, name string) bool, suite []string) []string {
	rules, found := proofs.Read(f.text)
	for i := range found {
		found[i] = f.path + ": " + found[i]
	}
	for _, r := range rules {
		for _, test := range r.Tests {
			if test.Folder == "" && !slices.Contains(suite, test.Name) {
				found = append(found, fmt.Sprintf("%s: rule %s: the suite has no case %s", f.path, r.Name, test))
			}
			for _, run := range test.Runs() {
				name, _, _ := strings.Cut(run.Name, "/")
				if !has(run.Folder, name) {
					found = append(found, fmt.Sprintf("%s: rule %s: no test %s in %s", f.path, r.Name, name, run.Folder))
				}
			}
		}
	}
	return found
}

// listTests returns the tests of folders: functions with the name and the type
// of one, in the files that the go command compiles into a package's test here.
func listTests(t *testing.T, folders []string) map[proofs.Run]bool {
	t.Helper()
	args := []string{"list", "-f", `{{range .TestGoFiles}}{{$.ImportPath}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$.ImportPath}}/{{.}}{{"\n"}}{{end}}`}
	for _, f := range folders {
		args = append(args, "./"+f)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", folders, err, out)
	}
	found := make(map[proofs.Run]bool)
	for _, name := range strings.Fields(string(out)) {
		f := fileOf(t, strings.TrimPrefix(name, module))
		for _, d := range f.ast.Decls {
			if fn, is := d.(*ast.FuncDecl); is && isTest(fn) {
				found[proofs.Run{Folder: f.dir(), Name: fn.Name.Name}] = true
			}
		}
	}
	return found
}

// isTest reports whether go test runs a function: func TestX(t *testing.T).
func isTest(fn *ast.FuncDecl) bool {
	rest, is := strings.CutPrefix(fn.Name.Name, "Test")
	if !is || fn.Recv != nil || fn.Type.Results != nil || fn.Type.TypeParams != nil || len(fn.Type.Params.List) != 1 ||
		rest != "" && unicode.IsLower([]rune(rest)[0]) {
		return false
	}
	star, is := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !is {
		return false
	}
	sel, is := star.X.(*ast.SelectorExpr)
	return is && sel.Sel.Name == "T"
}

// TestEveryRuleIsProven: that the tests it finds have passed is for the test
// runner to see (internal/testrun -proofs).
func TestEveryRuleIsProven(t *testing.T) {
	f := fileOf(t, "docs/semantics.md")
	rules, _ := proofs.Read(f.text)
	var folders []string
	for _, r := range rules {
		for _, test := range r.Tests {
			for _, run := range test.Runs() {
				folders = append(folders, run.Folder)
			}
		}
	}
	slices.Sort(folders)
	tests := listTests(t, slices.Compact(folders))
	report(t, unproven(f, func(folder, name string) bool { return tests[proofs.Run{Folder: folder, Name: name}] }, bridgetest.Names()))
}

// TestSupportIsProven: each back end of README's status has the test that it names.
func TestSupportIsProven(t *testing.T) {
	for _, e := range support.BackEnds {
		folder, name, _ := strings.Cut(e.Suite, ":")
		if !listTests(t, []string{folder})[proofs.Run{Folder: folder, Name: name}] {
			t.Errorf("%s: no test %s", e.Scheme, e.Suite)
		}
	}
}

func TestUnprovenFinds(t *testing.T) {
	suite := []string{"a/b"}
	has := func(folder, name string) bool {
		return folder == "p" && name == "TestThere" || name == proofs.Suite
	}
	md := func(text string) *file { return &file{path: "docs/a.md", text: text} }
	text := "**S1. A.**\n**S2. B.**\n| S1 | `p:TestThere` |\n"
	wantOne(t, unproven(md(text), has, suite), "S2 names no test")
	wantOne(t, unproven(md(text+"| S2 | `p:TestGone` |\n"), has, suite), "TestGone")
	wantOne(t, unproven(md(text+"| S2 | `a/c` |\n"), has, suite), "a/c")
	wantOne(t, unproven(md(text+"| S2 | `TestThere` |\n"), has, suite), "internal/scripted")
	report(t, unproven(md(text+"| S2 | `p:TestThere` `a/b` |\n"), has, suite))
	none := func(folder, _ string) bool { return folder != "internal/kdev" }
	wantOne(t, unproven(md("**S1. A.**\n| S1 | `a/b` |\n"), none, suite), "no test TestConformance in internal/kdev")
}

func TestIsTest(t *testing.T) {
	f := parseGo(t, "p/p_test.go", `package p
func TestA(t *testing.T) {}
func Test(t *testing.T) {}
func Testing(t *testing.T) {}
func TestMain(m *testing.M) {}
func TestB() {}
func TestC(t *testing.T, n int) {}
func (x *X) TestD(t *testing.T) {}
func helper(t *testing.T) {}
`)
	var names []string
	for _, d := range f.ast.Decls {
		if fn := d.(*ast.FuncDecl); isTest(fn) {
			names = append(names, fn.Name.Name)
		}
	}
	if want := []string{"TestA", "Test"}; !slices.Equal(names, want) {
		t.Errorf("tests %v, want %v", names, want)
	}
}
