package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// deviations lists where a decoded document is not what a record's keys say.
func deviations(path string, doc any, r record) []string {
	return appendDeviations(nil, path, doc, reflect.TypeOf(r))
}

func appendDeviations(found []string, path string, doc any, t reflect.Type) []string {
	if t.Kind() == reflect.Pointer {
		if doc == nil {
			return found
		}
		t = t.Elem()
	}
	ok := false
	switch t.Kind() {
	case reflect.Struct:
		m, is := doc.(map[string]any)
		if !is {
			break
		}
		return appendObject(found, path, m, t)
	case reflect.Slice:
		list, is := doc.([]any)
		if !is {
			break
		}
		for i, x := range list {
			found = appendDeviations(found, fmt.Sprintf("%s[%d]", path, i), x, t.Elem())
		}
		return found
	case reflect.Bool:
		_, ok = doc.(bool)
	case reflect.String:
		_, ok = doc.(string)
	case reflect.Float64:
		ok = isNumber(doc, false)
	default:
		ok = isNumber(doc, true)
	}
	if !ok {
		found = append(found, fmt.Sprintf("%s is %v, a %T", path, doc, doc))
	}
	return found
}

// isNumber reports whether a decoder made a number, as JSON or YAML do.
func isNumber(doc any, whole bool) bool {
	switch n := doc.(type) {
	case int, uint64:
		return true
	case float64:
		return !whole || n == math.Trunc(n)
	}
	return false
}

// appendObject compares the keys of an object with the fields of a record.
func appendObject(found []string, path string, m map[string]any, t reflect.Type) []string {
	known := make(map[string]bool)
	fields(t, func(f reflect.StructField, name string) {
		known[name] = true
		value, ok := m[name]
		if !ok {
			found = append(found, path+"."+name+" is missing")
			return
		}
		found = appendDeviations(found, path+"."+name, value, f.Type)
	})
	for name := range m {
		if !known[name] {
			found = append(found, path+"."+name+" is not documented")
		}
	}
	return found
}

func TestDeviationsAreFound(t *testing.T) {
	good := map[string]any{"device": "x", "node": "", "programs": []any{"p"}}
	require.Empty(t, deviations("", good, programsRecord{}))
	for _, bad := range []map[string]any{
		{"device": "x", "node": ""},
		{"device": 1.0, "node": "", "programs": []any{}},
		{"device": "x", "node": "", "programs": []any{}, "more": 1.0},
		{"device": "x", "node": "", "programs": nil},
		{"device": "x", "node": "", "programs": []any{1.0}},
	} {
		require.Len(t, deviations("", bad, programsRecord{}), 1, "%v", bad)
	}
	require.Len(t, deviations("", map[string]any{"device": "x", "process": 1.5, "node": "0.0.0"}, stoppedRecord{}), 1)
}

// TestKeysAreDocumented: every field has a key and a meaning, in snake case,
// and what is a time or a size says its unit.
func TestKeysAreDocumented(t *testing.T) {
	form := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for command, r := range outputs {
		for _, k := range keysOf(r) {
			last := k.Path[strings.LastIndex(k.Path, ".")+1:]
			require.Regexp(t, form, last, "%s: %s", command, k.Path)
			require.NotEmpty(t, k.Doc, "%s: %s", command, k.Path)
			if strings.HasPrefix(k.Type, "number") {
				require.Regexp(t, `_(seconds|per_second|ratio)$`, last, "%s: %s", command, k.Path)
			}
		}
	}
}

// TestFormatsAgree: YAML says what JSON says.
func TestFormatsAgree(t *testing.T) {
	text := "a\tb: \"#\" 1"
	r := messageRecord{Device: "007", farEnd: farEnd{Target: 1}, SizeBytes: 3, Hex: "1e3", Text: &text}
	var j, y bytes.Buffer
	require.NoError(t, writeJSON(&j, r, "  "))
	require.NoError(t, writeYAML(&y, r))
	var fromJSON, fromYAML any
	require.NoError(t, json.Unmarshal(j.Bytes(), &fromJSON))
	require.NoError(t, yaml.Unmarshal(y.Bytes(), &fromYAML))
	require.EqualValues(t, fmt.Sprint(fromJSON), fmt.Sprint(fromYAML))
	require.Empty(t, deviations("", fromYAML, r), y.String())
	var large bytes.Buffer
	require.NoError(t, writeYAML(&large, stoppedRecord{Process: math.MaxUint64}))
	require.Contains(t, large.String(), "process: 18446744073709551615\n")
}
