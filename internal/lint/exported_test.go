package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// methods that the standard library defines need no text of their own.
var wellKnown = map[string]bool{"Error": true, "String": true}

// undocumented lists the exported identifiers of a file without a comment.
func undocumented(f *file) []string {
	if f.isTest() || f.ast.Name.Name == "main" {
		return nil
	}
	var found []string
	note := func(pos token.Pos, name string) {
		found = append(found, fmt.Sprintf("%s: exported %s has no comment", f.fset.Position(pos), name))
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) && (d.Recv == nil || !wellKnown[d.Name.Name]) {
				note(d.Pos(), d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				for _, name := range undocumentedSpec(d, s) {
					note(s.Pos(), name)
				}
			}
		}
	}
	return found
}

// exportedReceiver is true for functions and for methods of exported types.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// undocumentedSpec returns the names of one type, const or var line. A group's
// comment speaks for its constants and variables, not for its types.
func undocumentedSpec(d *ast.GenDecl, s ast.Spec) []string {
	var names []string
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && (d.Doc == nil || d.Lparen.IsValid()) {
			names = append(names, s.Name.Name)
		}
		if i, ok := s.Type.(*ast.InterfaceType); ok && s.Name.IsExported() {
			names = append(names, undocumentedMethods(s.Name.Name, i)...)
		}
	case *ast.ValueSpec:
		if s.Doc != nil || s.Comment != nil || d.Doc != nil {
			return nil
		}
		for _, n := range s.Names {
			if n.IsExported() {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

// undocumentedMethods returns interface methods without a comment. One comment
// may speak for the methods on the lines that follow without a gap.
func undocumentedMethods(name string, i *ast.InterfaceType) []string {
	var names []string
	for k, m := range i.Methods.List {
		if len(m.Names) == 0 || m.Doc != nil || m.Comment != nil {
			continue
		}
		if k == 0 || i.Methods.List[k-1].End()+2 < m.Pos()-2 {
			names = append(names, name+"."+m.Names[0].Name)
		}
	}
	return names
}

func TestExportedIdentifiersAreDocumented(t *testing.T) {
	for _, f := range tree(t, ".go") {
		report(t, undocumented(f))
	}
}

func TestEveryPackageHasDoc(t *testing.T) {
	seen, doc := make(map[string]bool), make(map[string]bool)
	for _, f := range tree(t, ".go") {
		if f.isTest() {
			continue
		}
		seen[f.dir()] = true
		if strings.HasSuffix(f.path, "/doc.go") && f.ast.Doc != nil {
			doc[f.dir()] = true
		}
		if strings.HasSuffix(f.path, "/doc.go") && strings.Count(f.text, "\n") > 60 {
			t.Errorf("%s: longer than 60 lines", f.path)
		}
		if f.ast.Name.Name == "main" && f.ast.Doc != nil {
			doc[f.dir()] = true // a program may say it in its main file
		}
	}
	for dir := range seen {
		if !doc[dir] {
			t.Errorf("%s: package comment in doc.go is missing", dir)
		}
	}
}

func TestUndocumentedFinds(t *testing.T) {
	for _, text := range []string{
		"package p\nfunc Bare() {}",
		"package p\n// T is.\ntype T struct{}\nfunc (t *T) Bare() {}",
		"package p\n// T is.\ntype T[K any] struct{}\nfunc (t *T[K]) Bare() {}",
		"package p\ntype Bare int",
		"package p\n// Group.\ntype (\n\tBare int\n)",
		"package p\nconst Bare = 1",
		"package p\nvar (\n\tBare, b = 1, 2\n)",
		"package p\n// I is.\ntype I interface {\n\tBare()\n}",
	} {
		wantOne(t, undocumented(parseGo(t, "p/p.go", text)), "Bare")
	}
	fine := "package p\n// Group.\nconst (\n\tA = 1\n\tB = 2\n)\ntype t struct{}\nfunc (t t) Bare() {}\n// E is.\ntype E int\nfunc (e E) Error() string { return \"\" }"
	report(t, undocumented(parseGo(t, "p/p.go", fine)))
}
