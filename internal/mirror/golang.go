package mirror

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Package is what the Go type checker says of a package.
type Package struct {
	Structs   map[string]Struct
	Constants map[string]int64
}

// ReadPackage type-checks the sources in a folder, tests aside. Every struct
// must start with structs.HostLayout.
func ReadPackage(dir string) (Package, error) {
	m := Package{Structs: map[string]Struct{}, Constants: map[string]int64{}}
	fset := token.NewFileSet()
	files, err := parseFolder(fset, dir)
	if err != nil {
		return m, err
	}
	sizes := types.SizesFor("gc", runtime.GOARCH)
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil), Sizes: sizes}
	pkg, err := conf.Check(dir, fset, files, nil)
	if err != nil {
		return m, err
	}
	for _, name := range pkg.Scope().Names() {
		switch o := pkg.Scope().Lookup(name).(type) {
		case *types.Const:
			v, exact := constant.Int64Val(constant.ToInt(o.Val()))
			if !exact {
				return m, fmt.Errorf("constant %s is not an integer", name)
			}
			m.Constants[name] = v
		case *types.TypeName:
			if s, ok := o.Type().Underlying().(*types.Struct); ok {
				if m.Structs[name], err = layOut(name, s, sizes); err != nil {
					return m, err
				}
			}
		}
	}
	return m, nil
}

func parseFolder(fset *token.FileSet, dir string) ([]*ast.File, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".go") || strings.HasSuffix(n.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, n.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func layOut(name string, s *types.Struct, sizes types.Sizes) (Struct, error) {
	fields := make([]*types.Var, s.NumFields())
	for i := range fields {
		fields[i] = s.Field(i)
	}
	if len(fields) == 0 || fields[0].Type().String() != "structs.HostLayout" {
		return Struct{}, fmt.Errorf("struct %s does not start with _ structs.HostLayout", name)
	}
	l := Struct{Size: sizes.Sizeof(s)}
	for i, offset := range sizes.Offsetsof(fields) {
		if i > 0 {
			l.Fields = append(l.Fields, Field{fields[i].Name(), offset, sizes.Sizeof(fields[i].Type())})
		}
	}
	return l, nil
}
