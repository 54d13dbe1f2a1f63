package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// explain runs nfctl explain.
func explain(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"explain"}, args...), streams{nil, &out, &errs}, func(string) string { return "" })
	return code, out.String(), errs.String()
}

// pathsOf lists the keys of a JSON schema, as keysOf does of a record.
func pathsOf(prefix string, schema map[string]any) (all []string) {
	if items, is := schema["items"].(map[string]any); is {
		return pathsOf(prefix[:len(prefix)-1]+"[].", items)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		all = append(all, prefix+name)
		all = append(all, pathsOf(prefix+name+".", p.(map[string]any))...)
	}
	return all
}

// TestExplain: the keys, the schema and the manual page of each command are those of its record.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"man", dir}, streams{nil, &out, &errs}, func(string) string { return "" }), errs.String())
	for name, r := range outputs {
		var want []string
		for _, k := range keysOf(r) {
			require.NotEmpty(t, k.Doc, "%s: %s", name, k.Path)
			want = append(want, k.Path)
		}
		code, out, errs := explain(t, append(strings.Fields(name), "-o", "json")...)
		require.Equal(t, exitOK, code, errs)
		var said explainRecord
		require.NoError(t, json.Unmarshal([]byte(out), &said))
		require.Equal(t, explainRecord{name, keysOf(r)}, said)
		code, out, errs = explain(t, append([]string{"--schema"}, strings.Fields(name)...)...)
		require.Equal(t, exitOK, code, errs)
		var schema map[string]any
		require.NoError(t, json.Unmarshal([]byte(out), &schema))
		slices.Sort(want)
		got := pathsOf("", schema)
		slices.Sort(got)
		require.Equal(t, slices.Compact(want), got, name)
		page, err := os.ReadFile(filepath.Join(dir, "nfctl-"+strings.ReplaceAll(name, " ", "-")+".1"))
		require.NoError(t, err)
		require.Contains(t, string(page), keysOf(r)[0].Doc)
	}
}

func TestExplainRefuses(t *testing.T) {
	code, _, errs := explain(t, "nope")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, `no keys of "nope": name one of `+slices.Sorted(maps.Keys(outputs))[0])
	code, _, _ = explain(t)
	require.Equal(t, exitUsage, code)
}
