package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	goalRow = regexp.MustCompile(`(?m)^\| (T\d+[a-z]?) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$`)
	goalID  = regexp.MustCompile(`^"(T\d+[a-z]?)"$`)
)

// TestGoalsAreDocumented: the program has the goals that the document defines, by their names, and
// with the numbers that are wanted.
func TestGoalsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "performance.md"))
	require.NoError(t, err)
	wanted := make(map[string]string)
	for i, row := range goalRow.FindAllStringSubmatch(string(text), -1) {
		require.Less(t, i, len(allWanted), "%s is no goal of the program", row[1])
		require.Equal(t, [2]string{allWanted[i].id, allWanted[i].what}, [2]string{row[1], row[2]})
		wanted[row[1]] = row[3]
	}
	require.Len(t, wanted, len(allWanted))
	targets := 0
	inSources(t, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.BasicLit:
			if id := goalID.FindStringSubmatch(n.Value); id != nil {
				require.Contains(t, wanted, id[1])
			}
		case *ast.CompositeLit:
			if id, target := goalOf(n); target != "" {
				require.Regexp(t, `(^|[^\d.])`+regexp.QuoteMeta(target)+`([^\d.]|$)`, wanted[id], "target of %s", id)
				targets++
			}
		}
	})
	require.Greater(t, targets, 10, "goals with a number in their place")
}

// inSources calls fn for all that the sources of this module's packages hold.
func inSources(t *testing.T, fn func(ast.Node)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err == nil {
			ast.Inspect(file, func(n ast.Node) bool {
				fn(n)
				return true
			})
		}
		return err
	}))
}

// goalOf returns the name and the target of a goal that is written with both as they are.
func goalOf(lit *ast.CompositeLit) (id, target string) {
	for _, e := range lit.Elts {
		kv, _ := e.(*ast.KeyValueExpr)
		if kv == nil {
			continue
		}
		key, _ := kv.Key.(*ast.Ident)
		value, _ := kv.Value.(*ast.BasicLit)
		switch {
		case key == nil || value == nil:
		case key.Name == "ID" && value.Kind == token.STRING:
			id, _ = strconv.Unquote(value.Value)
		case key.Name == "Target":
			target = value.Value
		}
	}
	return id, target
}
