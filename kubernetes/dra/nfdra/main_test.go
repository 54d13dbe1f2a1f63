package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/kubernetes/internal/command"
)

// TestUsage: settings that make no sense are one line and exit code 2; nothing was begun.
func TestUsage(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte("{"), 0o600))
	for _, c := range []struct {
		args []string
		env  map[string]string
		says string
	}{
		{[]string{"--nothing"}, nil, "unknown flag"},
		{[]string{"x"}, nil, "unknown command"},
		{nil, nil, "--node: want the name of this node"},
		{[]string{"--node", "n", "--shares", "a=b"}, nil, "--shares: shares \"a=b\": want N or NAME=N"},
		{[]string{"--node", "n", "--memory", "1Mi"}, nil, "--memory \"1Mi\": want a quantity of bytes such as 16Gi, from 64Mi"},
		{[]string{"--node", "n", "--memory", "much"}, nil, "--memory \"much\""},
		{[]string{"--node", "n", "--address", "host:7450"}, nil, "want a UNIX socket"},
		{[]string{"--node", "n", "--kubeconfig", config}, nil, "--kubeconfig: "},
		{[]string{"--log-level", "loud"}, nil, "--log-level"},
		{nil, map[string]string{"NFDRA_GRACE": "soon"}, "NFDRA_GRACE: "},
	} {
		var out, err bytes.Buffer
		code := run(t.Context(), c.args, func(name string) string { return c.env[name] }, &out, &err)
		require.Equal(t, command.ExitUsage, code, "%s", &err)
		require.Contains(t, err.String(), c.says)
		require.Equal(t, 1, bytes.Count(err.Bytes(), []byte("\n")), "%s", &err)
		require.Empty(t, out.String())
	}
	var out bytes.Buffer
	require.Equal(t, command.ExitOK, run(t.Context(), []string{"--help"}, os.Getenv, &out, &out))
	require.Contains(t, out.String(), "--cdi-dir")
}

// variable is one of a manifest, with its value if it has one.
var variable = regexp.MustCompile(`\{name: (NFDRA_\w+), value(?:: "(.*)")?`)

// TestManifests: manifests have no variable that no flag has, and no value that makes no sense.
func TestManifests(t *testing.T) {
	for file, variables := range map[string]int{"driver/driver": 3, "dra-simulated/shares": 1} {
		text, err := os.ReadFile("../../../deploy/kubernetes/" + file + ".yaml")
		require.NoError(t, err)
		given := make(map[string]string)
		for _, m := range variable.FindAllSubmatch(text, -1) {
			given[string(m[1])] = string(m[2])
		}
		require.Len(t, given, variables, file)
		known(t, given)
	}
}

// known requires that variables are those of flags.
func known(t *testing.T, given map[string]string) {
	asked := make(map[string]bool)
	require.NoError(t, fromEnvironment(newRoot(nil, io.Discard, new(bool)).Flags(), func(name string) string {
		asked[name] = true
		return given[name]
	}))
	for name := range given {
		require.True(t, asked[name], name)
	}
}
