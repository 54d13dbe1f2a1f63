package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestContextFileRefuses: each fault of the file has an error with its line.
func TestContextFileRefuses(t *testing.T) {
	many := "contexts:\n"
	for i := range maxContexts + 1 {
		many += fmt.Sprintf("  c%d: {address: \"unix:x\"}\n", i)
	}
	for _, tc := range []struct{ text, says string }{
		{"a: b: c", "c.yaml: yaml: "},
		{"current: [x]\n", "c.yaml:1: current wants a value"},
		{"current:\n", "c.yaml:1: current wants a value"},
		{"contexts:\n  a:\n    address: unix:x\ncolour: blue\n", `c.yaml:4: unknown key "colour" (there are current and contexts)`},
		{"contexts: [a]\n", "c.yaml:1: contexts holds names with values"},
		{"contexts:\n  a: unix:x\n", "c.yaml:2: a holds names with values"},
		{"contexts:\n  a:\n    adress: unix:x\n", `c.yaml:3: unknown key "adress" of context a (there are address, server-user,`},
		{"contexts:\n  a: {address: x}\n  b: {address: x}\n  a: {address: y}\n", `c.yaml:4: "a" is there already`},
		{"contexts:\n  a: {server-user: x}\n", "c.yaml:2: context a has no address"},
		{"contexts:\n  a: {address: x, tls-cert: y}\n", "tls-cert and tls-key of context a go together"},
		{"contexts:\n  a: {address: ''}\n", "c.yaml:2: address wants a value"},
		{"contexts:\n  a: &x {address: y}\n  b: *x\n", "c.yaml:3: b holds names with values"},
		{"contexts:\n  \"a\\e[2J\": {address: y}\n", `c.yaml:2: "a\x1b[2J" is no name of a context`},
		{"contexts:\n  ? [a]\n  : {address: y}\n", "c.yaml:2: a key of contexts is not a word"},
		{"contexts:\n  " + strings.Repeat("a", 64) + ": {address: y}\n", "is no name of a context"},
		{"current: a\n---\ncurrent: b\n", "c.yaml: there is more than one document in it"},
		{"[]\n", "c.yaml:1: the file holds names with values"},
		{many, "c.yaml:1002: there are more than 1000 contexts"},
	} {
		_, err := parseContexts("c.yaml", []byte(tc.text))
		require.ErrorContains(t, err, tc.says)
		require.ErrorAs(t, err, new(usageError))
	}
	for _, text := range []string{"", "# nothing\n", "contexts: {}\n"} {
		c, err := parseContexts("c.yaml", []byte(text))
		require.NoError(t, err, text)
		require.Empty(t, c.contexts)
	}
}

// TestContextFileIsAFile: what is not a file of the user is not read.
func TestContextFileIsAFile(t *testing.T) {
	dir := t.TempDir()
	_, err := readContexts(dir)
	require.ErrorContains(t, err, "is not a regular file")
	path := filepath.Join(dir, "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte("#"+strings.Repeat(" ", maxContextFile)), 0o600))
	_, err = readContexts(path)
	require.ErrorContains(t, err, "has more than 1048576 bytes")
}

// TestUseContext changes one line and keeps the mode, or changes nothing.
func TestUseContext(t *testing.T) {
	two := "contexts:\n  a: {address: \"unix:x\"}\n  b: {address: \"unix:y\"}\n"
	for _, tc := range []struct{ text, want string }{
		{two, "current: b\n" + two},
		{"---\n# mine\n" + two, "---\n# mine\ncurrent: b\n" + two},
		{two + "current: a # the old one\n", two + "current: b # the old one\n"},
		{two + "\"current\": \"a\"", two + "current: b\n"},
		{"current: gone\r\n" + two, "current: b\n" + two},
		{"{current: a, contexts: {a: {address: x}, b: {address: y}}}\n", ""},
		{"current: >\n  a\n" + two, ""},
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o640))
		link := path + ".link"
		require.NoError(t, os.Symlink(path, link))
		c, err := readContexts(link)
		require.NoError(t, err)
		err = c.use("b")
		if tc.want == "" {
			require.ErrorContains(t, err, "set current in it yourself", tc.text)
			tc.want = tc.text
		} else {
			require.NoError(t, err, tc.text)
		}
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, tc.want, string(got))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.EqualValues(t, 0o640, info.Mode().Perm())
		left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".nfctl-*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
