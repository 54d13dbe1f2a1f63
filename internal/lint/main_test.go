package lint

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

const module = "github.com/nfcomms/nfcomms/"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file is one file of the tree.
type file struct {
	path string // from the root, with slashes
	text string
	said string // what remarks returned
	// Of Go files only:
	ast  *ast.File
	fset *token.FileSet
}

// dir returns the folder, "" for the root.
func (f *file) dir() string {
	if d := path.Dir(f.path); d != "." {
		return d
	}
	return ""
}

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isGenerated is true for Go files that a tool writes: what says how code should
// look holds for its source.
func (f *file) isGenerated() bool { return f.ast != nil && ast.IsGenerated(f.ast) }

// parse makes a file out of Go source.
func parse(path, text string) (*file, error) {
	f := &file{path: path, text: text, fset: token.NewFileSet()}
	tree, err := parser.ParseFile(f.fset, path, text, parser.ParseComments)
	f.ast = tree
	return f, err
}

// parseGo makes a file as the rules' own tests need it.
func parseGo(t *testing.T, path, text string) *file {
	t.Helper()
	f, err := parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// whole is the checkout: what any rule looks at, read and parsed once.
var whole = sync.OnceValues(func() ([]*file, error) {
	root := filepath.Join("..", "..")
	var files []*file
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != ".ci" || d.Name() == "bin" || d.Name() == "build" {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(rel, s) }) {
			return nil
		}
		f, err := read(root, rel)
		files = append(files, f)
		return err
	})
	return files, err
})

// suffixes are those of the files that some rule looks at.
var suffixes = []string{".go", ".c", ".h", ".md", ".sh", "go.mod", ".proto", "Makefile", ".ci/run", "LICENSE"}

// tree returns the files of the checkout that end in one of the suffixes.
func tree(t *testing.T, of ...string) []*file {
	t.Helper()
	all, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	var files []*file
	for _, f := range all {
		if slices.ContainsFunc(of, func(s string) bool { return strings.HasSuffix(f.path, s) }) {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no file ends in %v", of)
	}
	return files
}

// fileOf returns a file of the checkout that need not have one of the suffixes.
func fileOf(t *testing.T, rel string) *file {
	t.Helper()
	f, err := read(filepath.Join("..", ".."), rel)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// changed gives a file another text, so that a rule can be tried on a change.
var changed = flag.String("changed", "", "read `FILE=OTHER`: OTHER in the place of a file of the checkout")

func read(root, rel string) (*file, error) {
	name := filepath.Join(root, filepath.FromSlash(rel))
	if other, is := strings.CutPrefix(*changed, rel+"="); is {
		name = other
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(rel, ".go") {
		return parse(rel, string(text))
	}
	return &file{path: rel, text: string(text)}, nil
}

// report fails the test once for every violation.
func report(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

// wantOne fails unless a rule found exactly one violation, one that contains word.
func wantOne(t *testing.T, violations []string, word string) {
	t.Helper()
	if len(violations) != 1 || !strings.Contains(violations[0], word) {
		t.Errorf("violations %q, want one with %q", violations, word)
	}
}
