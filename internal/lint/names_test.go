package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// How many names a user may have to read: ceilings that only come down.
const (
	namesOfAPI      = 145 // of package nfcomms
	namesOfAPIAll   = 220 // of it and the packages beneath
	namesImportable = 806 // of all packages that other modules can import, 9 of them in pkg/telemetry
)

// publicNames lists the public names of a file, as T, F or T.Method. Methods that the standard library
// defines, as Error, are none that a user has to learn.
func publicNames(f *file) (list []string) {
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Recv == nil {
				list = append(list, d.Name.Name)
			} else if d.Name.IsExported() && exportedReceiver(d) && !wellKnown[d.Name.Name] && d.Name.Name != "Unwrap" {
				list = append(list, receiver(d)+"."+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				list = append(list, namesOf(s)...)
			}
		}
	}
	return list
}

// namesOf lists those of a type, const or var line, and of an interface its methods.
func namesOf(s ast.Spec) (list []string) {
	note := func(id *ast.Ident) {
		if id.IsExported() {
			list = append(list, id.Name)
		}
	}
	switch s := s.(type) {
	case *ast.TypeSpec:
		note(s.Name)
		if i, ok := s.Type.(*ast.InterfaceType); ok && s.Name.IsExported() {
			for _, m := range i.Methods.List {
				for _, id := range m.Names {
					if id.IsExported() {
						list = append(list, s.Name.Name+"."+id.Name)
					}
				}
			}
		}
	case *ast.ValueSpec:
		for _, id := range s.Names {
			note(id)
		}
	}
	return list
}

// importable reports whether other modules can import the package of a file.
func importable(f *file) bool {
	return !f.isTest() && !f.isGenerated() && f.ast.Name.Name != "main" && !slices.ContainsFunc(strings.Split(f.dir(), "/"), func(d string) bool { return d == "internal" || d == "testdata" })
}

// TestNamesStayFew counts the public names; with -v it prints how many each folder has. A name that
// two systems have in files of their own is one.
func TestNamesStayFew(t *testing.T) {
	seen, count := make(map[string]bool), make(map[string]int)
	for _, f := range tree(t, ".go") {
		if !importable(f) {
			continue
		}
		for _, name := range publicNames(f) {
			if key := f.dir() + " " + name; !seen[key] {
				seen[key] = true
				count[f.dir()]++
			}
		}
	}
	api, all, whole := count["pkg/nfcomms"], 0, 0
	for dir, n := range count {
		t.Logf("%5d %s", n, dir)
		whole += n
		if dir == "pkg/nfcomms" || strings.HasPrefix(dir, "pkg/nfcomms/") {
			all += n
		}
	}
	for _, c := range []struct {
		what        string
		names, most int
	}{
		{"pkg/nfcomms", api, namesOfAPI},
		{"pkg/nfcomms and the packages beneath", all, namesOfAPIAll},
		{"all packages that others can import", whole, namesImportable},
	} {
		t.Logf("%5d names of %s, at most %d", c.names, c.what, c.most)
		if c.names > c.most {
			t.Errorf("%d names of %s, at most %d", c.names, c.what, c.most)
		}
	}
}

func TestNamesFinds(t *testing.T) {
	text := "package p\nconst A, b = 1, 2\nvar C int\nfunc F() {}\nfunc f() {}\ntype T struct{ Field int }\n" +
		"func (T) M() {}\nfunc (T) Error() string { return \"\" }\ntype t int\nfunc (t) M() {}\ntype I interface { N(); n() }\n"
	if got, want := strings.Join(publicNames(parseGo(t, "p/p.go", text)), " "), "A C F T T.M I I.N"; got != want {
		t.Errorf("public names %q, want %q", got, want)
	}
}
