package topology

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodFile = `# four nodes
torus: 2x2x1
flow: classic
depth: 512
nodes:
  - node: 0.0.0
    name: alpha
    listen: 127.0.0.1:7000
  - node: 1.0.0
    name: beta
    listen: udp://127.0.0.1:7001
    certificate: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
links:
  - {from: 0.0.0, link: x+, rate: 28Gbit/s}
  - {from: 0.1.0, link: y-, off: true}
`

func TestFile(t *testing.T) {
	d, err := Parse("good.yaml", []byte(goodFile))
	require.NoError(t, err)
	require.Equal(t, Torus{2, 2, 1}, d.Torus)
	require.Equal(t, "classic", d.Flow)
	require.Equal(t, 512, d.Depth)
	require.Len(t, d.Nodes, 2)
	require.Equal(t, "beta", d.Find("1.0.0").Name)
	require.Equal(t, "127.0.0.1:7000", d.Find("alpha").Listen)
	require.Equal(t, "udp://127.0.0.1:7001", d.Find("beta").Listen)
	require.Nil(t, d.Find("gamma"))
	require.Len(t, d.Links, 2)
	require.Equal(t, 28.0, d.Links[0].Gigabits)
	require.True(t, d.Links[1].Off)
	d, err = Parse("small.yaml", []byte("torus: 4x4x1\n"))
	require.NoError(t, err)
	require.Equal(t, "cumulative", d.Flow)
}

// TestFilesThatAreRefused: each with its file, its line and one typed error.
func TestFilesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		line string
		want error
	}{
		"empty":             {"", ":1:", ErrSyntax},
		"no torus":          {"nodes: []\n", ":1:", ErrSyntax},
		"a list":            {"- 1\n", ":1:", ErrSyntax},
		"one node":          {"torus: 1x1x1\n", ":1:", ErrTorus},
		"33 thousand":       {"\ntorus: 33x32x32\n", ":2:", ErrTorus},
		"unknown key":       {"torus: 2x2x1\ncolour: red\n", ":2:", ErrSyntax},
		"key twice":         {"torus: 2x2x1\ntorus: 4x4x1\n", ":2:", ErrSyntax},
		"no value":          {"torus:\n", ":1:", ErrSyntax},
		"bad flow":          {"torus: 2x2x1\nflow: fast\n", ":2:", ErrSyntax},
		"bad depth":         {"torus: 2x2x1\ndepth: 1000\n", ":2:", ErrSyntax},
		"nodes no list":     {"torus: 2x2x1\nnodes: 3\n", ":2:", ErrSyntax},
		"node no mapping":   {"torus: 2x2x1\nnodes:\n  - 0.0.0\n", ":3:", ErrSyntax},
		"node without":      {"torus: 2x2x1\nnodes:\n  - name: a\n", ":3:", ErrSyntax},
		"outside":           {"torus: 2x2x1\nnodes:\n  - node: 0.0.0\n  - node: 2.0.0\n", ":4:", ErrOutside},
		"bad coordinates":   {"torus: 2x2x1\nnodes:\n  - node: 0,0,0\n", ":3:", ErrSyntax},
		"twice":             {"torus: 2x2x1\nnodes:\n  - node: 0.0.0\n  - node: 0.0.0\n", ":4:", ErrContradiction},
		"one name":          {"torus: 2x2x1\nnodes:\n  - {node: 0.0.0, name: a}\n  - {node: 1.0.0, name: a}\n", ":4:", ErrContradiction},
		"bad name":          {"torus: 2x2x1\nnodes:\n  - {node: 0.0.0, name: A B}\n", ":3:", ErrSyntax},
		"one address":       {"torus: 2x2x1\nnodes:\n  - {node: 0.0.0, listen: 'a:1'}\n  - {node: 1.0.0, listen: 'a:1'}\n", ":4:", ErrContradiction},
		"one port":          {"torus: 2x2x1\nnodes:\n  - {node: 0.0.0, listen: 'udp://a:1'}\n  - {node: 1.0.0, listen: 'tcp://a:1'}\n", ":4:", ErrContradiction},
		"no YAML":           {"torus: 2x2x1\nnodes: [\n", ":2:", ErrSyntax},
		"no YAML behind it": {"torus: 2x2x1\n---\nnodes: [\n", ":3:", ErrSyntax},
		"tabs":              {"torus: 2x2x1\nnodes:\n\t- node: 0.0.0\n", ":3:", ErrSyntax},
		"no text":           {"torus: \x00\n", ":1:", ErrSyntax},
		"an alias of none":  {"torus: *a\n", ":1:", ErrSyntax},
		"bad medium":        {"torus: 2x2x1\nnodes:\n  - {node: 0.0.0, listen: 'quic://a:1'}\n", ":3:", ErrSyntax},
		"bad address":       {"torus: 2x2x1\nnodes:\n  - {node: 0.0.0, listen: 'a:99999'}\n", ":3:", ErrSyntax},
		"bad certificate":   {"torus: 2x2x1\nnodes:\n  - {node: 0.0.0, certificate: abc}\n", ":3:", ErrSyntax},
		"to itself":         {"torus: 2x2x1\nlinks:\n  - {from: 0.0.0, link: z+, off: true}\n", ":3:", ErrContradiction},
		"link outside":      {"torus: 2x2x1\nlinks:\n  - {from: 0.2.0, link: x+, off: true}\n", ":3:", ErrOutside},
		"link of both ends": {"torus: 4x2x1\nlinks:\n  - {from: 0.0.0, link: x+, off: true}\n  - {from: 1.0.0, link: x-, rate: 1Gbit/s}\n", ":4:", ErrContradiction},
		"off with a rate":   {"torus: 2x2x1\nlinks:\n  - {from: 0.0.0, link: x+, off: true, rate: 1Gbit/s}\n", ":3:", ErrContradiction},
		"half a link":       {"torus: 2x2x1\nlinks:\n  - {from: 0.0.0, off: true}\n", ":3:", ErrSyntax},
		"no such link":      {"torus: 2x2x1\nlinks:\n  - {from: 0.0.0, link: w+}\n", ":3:", ErrSyntax},
		"bad rate":          {"torus: 2x2x1\nlinks:\n  - {from: 0.0.0, link: x+, rate: 28}\n", ":3:", ErrSyntax},
		"bad off":           {"torus: 2x2x1\nlinks:\n  - {from: 0.0.0, link: x+, off: maybe}\n", ":3:", ErrSyntax},
		"two documents":     {"torus: 2x2x1\n---\ntorus: 4x4x1\n", ":2:", ErrSyntax},
	} {
		_, err := Parse("f.yaml", []byte(c.text))
		require.ErrorIs(t, err, c.want, name)
		require.Contains(t, err.Error(), "f.yaml"+c.line, name)
		require.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "%s: %v", name, err)
	}
}

// FuzzParse: any file is read or refused; what is read is a torus.
func FuzzParse(f *testing.F) {
	f.Add([]byte(goodFile))
	f.Add([]byte("torus: 2x2x1\nlinks: [{from: 0.0.0}]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse("f", data)
		if err != nil {
			require.Regexp(t, `^(f:\d+: .*(\n|$))+$`, err.Error())
			return
		}
		require.NoError(t, d.Torus.Check())
	})
}
