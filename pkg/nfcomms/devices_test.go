package nfcomms

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

func init() {
	bridge.RegisterList("fake", func(context.Context) []Found {
		return []Found{{Address: "fake:", Driver: "fake", Info: &Info{Driver: "fake"}}, {Address: "fake:2", Driver: "fake", Err: ErrBusy}}
	})
}

func TestDevices(t *testing.T) {
	found, err := Devices(background(t))
	require.NoError(t, err)
	require.True(t, slices.IsSortedFunc(found, func(a, b Found) int { return strings.Compare(a.Driver, b.Driver) }))
	at := make(map[string]Found)
	for _, f := range found {
		at[f.Address] = f
		dev, err := Open(background(t), f.Address)
		if err == nil {
			require.NoError(t, dev.Close())
		}
		if f.Driver != "fake" {
			assert.Equal(t, f.Err == nil, err == nil, "%s: %v, and when it is opened %v", f.Address, f.Err, err)
		}
	}
	require.Contains(t, at, "sim:")
	require.Equal(t, "fake", at["fake:"].Info.Driver)
	require.ErrorIs(t, at["fake:2"].Err, ErrBusy)
	require.True(t, slices.ContainsFunc(found, func(f Found) bool { return f.Driver == "dev" }), "or what is missing for one")
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	found, err = Devices(ctx)
	require.Nil(t, found)
	require.ErrorIs(t, err, ErrWithdrawn)
	require.ErrorContains(t, err, "list devices: withdrawn: context canceled")
}

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
