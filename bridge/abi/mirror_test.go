package abi

import (
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goMirror is what the Go type checker says of this package.
type goMirror struct {
	structs   map[string]layoutStruct
	constants map[string]int64
}

// readMirror type-checks this package's own sources, so that no list of types
// has to be kept by hand.
func readMirror(t *testing.T) goMirror {
	t.Helper()
	fset := token.NewFileSet()
	names, err := os.ReadDir(".")
	require.NoError(t, err)
	var files []*ast.File
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".go") || strings.HasSuffix(n.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, n.Name(), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	sizes := types.SizesFor("gc", runtime.GOARCH)
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil), Sizes: sizes}
	pkg, err := conf.Check("abi", fset, files, nil)
	require.NoError(t, err)

	m := goMirror{structs: map[string]layoutStruct{}, constants: map[string]int64{}}
	for _, name := range pkg.Scope().Names() {
		switch o := pkg.Scope().Lookup(name).(type) {
		case *types.Const:
			v, exact := constant.Int64Val(constant.ToInt(o.Val()))
			require.True(t, exact, "constant %s is not an integer", name)
			m.constants[name] = v
		case *types.TypeName:
			if s, ok := o.Type().Underlying().(*types.Struct); ok {
				m.structs[name] = layOut(t, name, s, sizes)
			}
		}
	}
	return m
}

func layOut(t *testing.T, name string, s *types.Struct, sizes types.Sizes) layoutStruct {
	t.Helper()
	fields := make([]*types.Var, s.NumFields())
	for i := range fields {
		fields[i] = s.Field(i)
	}
	require.NotEmpty(t, fields, "struct %s is empty", name)
	require.Equal(t, "structs.HostLayout", fields[0].Type().String(),
		"struct %s does not start with _ structs.HostLayout", name)
	l := layoutStruct{size: sizes.Sizeof(s)}
	for i, offset := range sizes.Offsetsof(fields) {
		if i > 0 {
			l.fields = append(l.fields, layoutField{fields[i].Name(), offset, sizes.Sizeof(fields[i].Type())})
		}
	}
	return l
}
