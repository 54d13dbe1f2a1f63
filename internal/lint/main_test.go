package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

const module = "github.com/nfcomms/nfcomms/"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file is one file of the tree.
type file struct {
	path string // from the root, with slashes
	text string
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

// parseGo makes a file out of Go source, as the rules' own tests need.
func parseGo(t *testing.T, path, text string) *file {
	t.Helper()
	f := &file{path: path, text: text, fset: token.NewFileSet()}
	tree, err := parser.ParseFile(f.fset, path, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	f.ast = tree
	return f
}

// tree reads the files of the checkout that end in one of the suffixes.
func tree(t *testing.T, suffixes ...string) []*file {
	t.Helper()
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
		for _, s := range suffixes {
			if strings.HasSuffix(rel, s) {
				files = append(files, read(t, root, rel))
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no file ends in %v", suffixes)
	}
	return files
}

func read(t *testing.T, root, rel string) *file {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(rel)))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(rel, ".go") {
		return parseGo(t, rel, string(text))
	}
	return &file{path: rel, text: string(text)}
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
