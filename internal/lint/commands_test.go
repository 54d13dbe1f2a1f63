package lint

import (
	"fmt"
	"go/ast"
	"testing"

	"github.com/stretchr/testify/require"
)

// unbounded lists the commands of a file that a process which keeps their output open holds up
// after their context has ended: those made without a WaitDelay.
func unbounded(f *file) []string {
	if f.isTest() {
		return nil
	}
	var found []string
	for _, d := range f.ast.Decls {
		var made ast.Node
		bounded := false
		ast.Inspect(d, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				of, _ := s.X.(*ast.Ident)
				if of != nil && of.Name == "exec" && s.Sel.Name == "CommandContext" {
					made = n
				}
				bounded = bounded || s.Sel.Name == "WaitDelay"
			}
			return true
		})
		if made != nil && !bounded {
			found = append(found, fmt.Sprintf("%s: use internal/subprocess, or set WaitDelay", f.fset.Position(made.Pos())))
		}
	}
	return found
}

// TestCommandsAreBounded: each command that has a context ends with it.
func TestCommandsAreBounded(t *testing.T) {
	for _, f := range tree(t, ".go") {
		for _, line := range unbounded(f) {
			t.Error(line)
		}
	}
	const made = "package a\n\nfunc f() {\n\tc := exec.CommandContext(ctx, name)\n"
	require.Equal(t, []string{"a.go:4:7: use internal/subprocess, or set WaitDelay"}, unbounded(parseGo(t, "a.go", made+"}\n")))
	require.Empty(t, unbounded(parseGo(t, "a.go", made+"\tc.WaitDelay = 1\n}\n")))
}
