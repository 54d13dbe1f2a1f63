package tutorial

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../../.."

// fragment is where a listing that is no whole program is put: the README says that
// there are a context and a device, and the text before it what else there is.
type fragment struct {
	before string // statements for what that text names
	runs   bool   // false: it needs another process or node, and is compiled only
}

// fragments are those of each page and of each file with documentation, in order.
var fragments = map[string][]fragment{
	"docs/control.md": {
		{before: `listener, err := net.Listen("tcp", "127.0.0.1:0"); check(err)`, runs: true},
		{},
	},
	"docs/fabric.md": {
		{runs: true},
		{before: "key, data := make([]byte, 8), make([]byte, 8)"},
		{before: "tell := func(fabric.Window) {}; dev, err = nfcomms.Open(ctx, `sim:?torus=2x1x1`); check(err)", runs: true},
		{}, {},
	},
	"docs/metrics.md": {{runs: true}},
	"docs/pools.md":   {{before: "type Request struct{ A, B uint64 }; type Answer uint64; var image, in, out []byte; var request Request"}},
	"docs/programs.md": {
		{runs: true},
		{before: ""},
		{before: "name := ``"},
	},
	"docs/shm.md":                {{}},
	"pkg/control/access/doc.go":  {{before: "var logger *slog.Logger"}},
	"pkg/control/doc.go":         {{}, {}},
	"pkg/group/doc.go":           {{before: "rank := 0; var events []byte"}},
	"pkg/group/torus/doc.go":     {{before: "rank := 0"}},
	"pkg/group/process/doc.go":   {{before: "var mesh group.Transport"}},
	"pkg/metrics/doc.go":         {{runs: true}},
	"pkg/nfcomms/completions.go": {{before: "p, err := dev.Run(ctx, nfcomms.Program{Name: `sink`}); check(err); ch := p.Channels[0]; parts := [][]byte{{1}, {2}}", runs: true}},
	"pkg/nfcomms/doc.go":         {{before: "samples, buf := make([]float64, 1000), make([]byte, 56)", runs: true}},
	"pkg/nfcomms/pool/doc.go":    {{before: "type Pair struct{ A, B uint64 }; var image, in, out []byte"}},
	"pkg/nfcomms/rings/doc.go":   {{}},
	"pkg/nfcomms/trace/doc.go":   {{before: "p, err := dev.Run(ctx, nfcomms.Program{Name: `sink`}); check(err); ch := p.Channels[0]; samples := make([]float64, 1000)", runs: true}},
	"pkg/nfcomms/transfer.go":    {{before: "p, err := dev.Run(ctx, nfcomms.Program{Name: `sink`}); check(err); ch := p.Channels[0]; samples := make([]float64, 1000)", runs: true}},
	"pkg/program/doc.go":         {{}},
	"pkg/ring/doc.go":            {{before: "var sample []byte"}},
}

// imports are the packages that fragments use.
var imports = []string{
	"embed", "encoding/binary", "fmt", "log", "log/slog", "net", "net/http", "os", "context", "google.golang.org/grpc",
	"github.com/prometheus/client_golang/prometheus",
	"github.com/nfcomms/nfcomms/pkg/control", "github.com/nfcomms/nfcomms/pkg/control/access",
	"github.com/nfcomms/nfcomms/pkg/group", "github.com/nfcomms/nfcomms/pkg/group/process", "github.com/nfcomms/nfcomms/pkg/group/torus",
	"github.com/nfcomms/nfcomms/pkg/metrics", "github.com/nfcomms/nfcomms/pkg/nfcomms", "github.com/nfcomms/nfcomms/pkg/nfcomms/fabric", "github.com/nfcomms/nfcomms/pkg/nfcomms/pool", "github.com/nfcomms/nfcomms/pkg/nfcomms/rings", "github.com/nfcomms/nfcomms/pkg/nfcomms/trace",
	"github.com/nfcomms/nfcomms/pkg/program", "github.com/nfcomms/nfcomms/pkg/ring", stubs,
}

// stubs is the package nfcommsv1.
const stubs = "github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"

var (
	goListing = regexp.MustCompile("(?s)```go\n(.*?)```\n")
	docBlock  = regexp.MustCompile(`(?m)(^//\t.*\n(//\n)?)+`)
	left      = regexp.MustCompile(`(?m)^\s*(…|// \.\.\.)$`)
	assigns   = regexp.MustCompile(`(?m)^\S.* :?= .*\(`)
)

// fragmentsOf returns the listings of Go in a file that are no whole programs.
func fragmentsOf(t *testing.T, name string) (all []string) {
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	if filepath.Ext(name) == ".md" {
		for _, m := range goListing.FindAllSubmatch(text, -1) {
			if !bytes.HasPrefix(m[1], []byte("package ")) && !bytes.HasPrefix(m[1], []byte("// Command ")) {
				all = append(all, string(m[1]))
			}
		}
		return all
	}
	for _, block := range docBlock.FindAllString(string(text), -1) {
		block = regexp.MustCompile(`(?m)^//\t?`).ReplaceAllString(block, "")
		if assigns.MatchString(block) {
			all = append(all, block)
		}
	}
	return all
}

// function returns a fragment as a function: every error is checked, every variable
// used, and a variable that is declared again is assigned to.
func function(t *testing.T, name, text string, f fragment) string {
	text = left.ReplaceAllString(strings.ReplaceAll(text, "{ … }", "{}"), "")
	source := "package main\nfunc " + name + "(ctx context.Context, dev *nfcomms.Device, err error) {\n" + f.before + "\n" + text + "\n}\n"
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	require.NoError(t, err, source)
	declared := map[string]bool{"ctx": true, "dev": true, "err": true}
	body := file.Decls[0].(*ast.FuncDecl).Body
	var list []ast.Stmt
	for _, s := range body.List {
		if loop, is := s.(*ast.RangeStmt); is && len(loop.Body.List) == 0 {
			for _, x := range []ast.Expr{loop.Key, loop.Value} {
				if id, is := x.(*ast.Ident); is && id.Name != "_" {
					loop.Body.List = append(loop.Body.List, use(x))
				}
			}
		}
		list = append(list, s)
		a, is := s.(*ast.AssignStmt)
		if !is {
			continue
		}
		known := true
		for _, x := range a.Lhs {
			id, is := x.(*ast.Ident)
			if is && id.Name != "_" {
				known = known && declared[id.Name]
				declared[id.Name] = true
				list = append(list, use(x))
			}
		}
		if known {
			a.Tok = token.ASSIGN
		}
	}
	body.List = list
	var out bytes.Buffer
	require.NoError(t, format.Node(&out, set, file))
	_, text, _ = strings.Cut(out.String(), "\n")
	return text
}

// use is a statement that uses a variable; of an error it is the check.
func use(x ast.Expr) ast.Stmt {
	if id, is := x.(*ast.Ident); is && id.Name == "err" {
		return &ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent("check"), Args: []ast.Expr{ast.NewIdent("err")}}}
	}
	return &ast.AssignStmt{Lhs: []ast.Expr{ast.NewIdent("_")}, Tok: token.ASSIGN, Rhs: []ast.Expr{x}}
}

const around = `
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, "sim:")
	check(err)
	defer dev.Close()
	fragments[os.Args[1]](ctx, dev, nil)
}
`

// tested begin the pages and packages whose listings have tests of their own.
var tested = []string{"docs/tutorial/", "docs/telemetry.md", "pkg/telemetry/"}

// TestFragments: each listing of Go in a page or in the documentation of a package that
// is no whole program compiles where its text puts it, and those that need nothing
// beside a device run.
func TestFragments(t *testing.T) {
	files, err := exec.Command("git", "-C", root, "ls-files", "README.md", "docs/*.md", "bridge/*.go", "pkg/*.go", "cmd/*.go").Output()
	require.NoError(t, err)
	var code, table strings.Builder
	var run []string
	for _, name := range strings.Fields(string(files)) {
		if strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(tested, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		all := fragmentsOf(t, name)
		require.Len(t, fragments[name], len(all), "listings of %s that are no whole program", name)
		for i, text := range all {
			f := fmt.Sprintf("f%d", strings.Count(table.String(), "\n"))
			code.WriteString(function(t, f, text, fragments[name][i]))
			fmt.Fprintf(&table, "\t%q: %s,\n", name+" "+strconv.Itoa(i), f)
			if fragments[name][i].runs {
				run = append(run, name+" "+strconv.Itoa(i))
			}
		}
	}
	text := code.String() + around + "\nvar fragments = map[string]func(context.Context, *nfcomms.Device, error){\n" + table.String() + "}\n"
	var used []string
	for _, i := range imports {
		if regexp.MustCompile(`\b(nfcomms)?` + filepath.Base(i) + `\.[A-Z]`).MatchString(text) {
			used = append(used, strconv.Quote(i))
		}
	}
	slices.Sort(used)
	source, err := format.Source([]byte("package main\n\nimport (\n" + strings.Join(used, "\n") + "\n)\n" + text))
	require.NoError(t, err)
	program := built(t, string(source))
	for _, name := range run {
		cmd := exec.Command(program, name)
		cmd.Dir = folder(t)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
	}
}
