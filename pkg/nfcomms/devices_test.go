package nfcomms

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOpenListsTheOptions: the documentation of Open names the options that each
// scheme has, and no other.
func TestOpenListsTheOptions(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "device.go", nil, parser.ParseComments)
	require.NoError(t, err)
	doc := ""
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "Open" {
			doc = f.Doc.Text()
		}
	}
	_, doc, ok := strings.Cut(doc, "Options of \"sim:\"")
	require.True(t, ok)
	sim, dev, ok := strings.Cut(doc, "Options of \"dev:\"")
	require.True(t, ok)
	for address, text := range map[string]string{"sim:?nothing=1": sim, "dev:0?nothing=1": dev} {
		_, err := Open(background(t), address)
		require.ErrorIs(t, err, ErrOption)
		_, known, ok := strings.Cut(err.Error(), "is not one of ")
		require.True(t, ok, err)
		known, _, _ = strings.Cut(known, ":")
		want := strings.Split(known, ", ")
		var got []string
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "\t") {
				got = append(got, documented(line)...)
			}
		}
		require.ElementsMatch(t, want, got, address)
	}
}

// documented returns the options that a line of code in a comment names.
func documented(line string) []string {
	if m := regexp.MustCompile(`^\t([a-z-]+)=`).FindStringSubmatch(line); m != nil {
		return m[1:]
	}
	return strings.Split(strings.TrimSpace(line), ", ")
}
