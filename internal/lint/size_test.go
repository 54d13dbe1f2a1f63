package lint

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
)

// Limits in lines. Tests may be longer.
const (
	maxGoFunc, maxGoTestFunc = 50, 120
	maxGoFile, maxGoTestFile = 600, 800
	maxCFunc, maxCTestFunc   = 60, 120
	maxCFile                 = 900
)

// tooLong lists what is over a limit in a Go or C file.
func tooLong(f *file) []string {
	maxFile, maxFunc := maxCFile, maxCFunc
	switch {
	case f.ast != nil && f.isTest():
		maxFile, maxFunc = maxGoTestFile, maxGoTestFunc
	case f.ast != nil:
		maxFile, maxFunc = maxGoFile, maxGoFunc
	case strings.Contains(f.path, "/test/"):
		maxFunc = maxCTestFunc
	}
	var found []string
	if n := strings.Count(f.text, "\n"); n > maxFile {
		found = append(found, fmt.Sprintf("%s: %d lines, at most %d", f.path, n, maxFile))
	}
	for _, fn := range functions(f) {
		if fn.lines > maxFunc {
			found = append(found, fmt.Sprintf("%s:%d: %s has %d lines, at most %d", f.path, fn.line, fn.name, fn.lines, maxFunc))
		}
	}
	return found
}

type function struct {
	name        string
	line, lines int
}

func functions(f *file) []function {
	if f.ast == nil {
		return cFunctions(f.text)
	}
	var list []function
	for _, d := range f.ast.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			first, last := f.fset.Position(d.Pos()).Line, f.fset.Position(d.End()).Line
			list = append(list, function{d.Name.Name, first, last - first + 1})
		}
	}
	return list
}

// cFunctions finds functions by kernel style: their braces stand alone in
// column 0, after a line that closes the parameters.
func cFunctions(text string) []function {
	var list []function
	lines := strings.Split(text, "\n")
	open := -1
	for i, line := range lines {
		switch {
		case line == "{" && i > 0 && strings.HasSuffix(lines[i-1], ")"):
			open = i
		case line == "}" && open >= 0:
			list = append(list, function{strings.TrimSpace(lines[open-1]), open + 1, i - open + 1})
			open = -1
		}
	}
	return list
}

func TestSizes(t *testing.T) {
	for _, f := range tree(t, ".go", ".c", ".h") {
		report(t, tooLong(f))
	}
}

func TestTooLongFinds(t *testing.T) {
	body := strings.Repeat("\t_ = 0\n", maxGoFunc)
	wantOne(t, tooLong(parseGo(t, "p/p.go", "package p\n\nfunc long() {\n"+body+"}\n")), "long")
	wantOne(t, tooLong(parseGo(t, "p/p.go", "package p\n"+strings.Repeat("\n", maxGoFile))), "lines, at most")
	c := "int long_one(int a,\n\t     int b)\n{\n" + strings.Repeat("\ta++;\n", maxCFunc) + "}\n"
	wantOne(t, tooLong(&file{path: "firmware/x.c", text: c}), "int b)")
	report(t, tooLong(&file{path: "firmware/test/x.c", text: c}))
	wantOne(t, tooLong(&file{path: "firmware/x.c", text: strings.Repeat("\n", maxCFile+1)}), "lines, at most")
}
