package mirror

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var names = &Names{Prefix: "x_", Initialisms: []string{"ns"}, Constant: func(_, name string) string {
	return (&Names{}).Camel(name)
}}

func TestCamel(t *testing.T) {
	require.Equal(t, "TimeoutNS", names.Camel("timeout_ns"))
	require.Equal(t, "AWord", names.Camel("A_WORD"))
}

// The comparison itself must be able to fail, each way.
func TestComparisonFindsDrift(t *testing.T) {
	slot := func(offset, size int64) map[string]Struct {
		return map[string]Struct{"x_slot": {64, []Field{{"header", offset, size}}}}
	}
	mirror := map[string]Struct{"Slot": {64, []Field{{"Header", 0, 8}}}}
	assert.Empty(t, names.CompareStructs(slot(0, 8), mirror))
	assert.Len(t, names.CompareStructs(slot(8, 8), mirror), 1, "offset")
	assert.Len(t, names.CompareStructs(slot(0, 4), mirror), 1, "member size")
	assert.Len(t, names.CompareStructs(nil, mirror), 1, "struct only in Go")
	assert.Len(t, names.CompareStructs(slot(0, 8), nil), 1, "struct only in C")
	longer := map[string]Struct{"Slot": {72, append(mirror["Slot"].Fields, Field{"_", 8, 64})}}
	assert.Len(t, names.CompareStructs(slot(0, 8), longer), 2, "size and a member only in Go")
	assert.Len(t, names.CompareStructs(map[string]Struct{"x_slot": longer["Slot"]}, mirror), 2, "size and a member only in C")

	one := map[string]Enumerator{"TYPE_ACK": {"type", 4}}
	assert.Empty(t, names.CompareConstants(one, map[string]int64{"TypeAck": 4}))
	assert.Empty(t, names.CompareConstants(one, map[string]int64{"typeAck": 4}))
	assert.Len(t, names.CompareConstants(one, map[string]int64{"TypeAck": 5}), 1, "value")
	assert.Len(t, names.CompareConstants(one, nil), 1, "constant only in C")
	assert.Len(t, names.CompareConstants(nil, map[string]int64{"typeAck": 4}), 1, "constant only in Go")
}

// write makes a file in a folder of its own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestReadHeader(t *testing.T) {
	path := write(t, "x.h", "#include <stdint.h>\n#define X_BIG 0xc0084e41u\n#define OTHER 1\n"+
		"struct x_pair { uint32_t a; uint64_t b[2]; };\nenum x_kind { X_ONE = 1, X_MINUS = -1 };\n")
	h, err := ReadHeader(t.TempDir(), path, regexp.MustCompile(`^X_`))
	require.NoError(t, err)
	require.Equal(t, map[string]Struct{"x_pair": {24, []Field{{"a", 0, 4}, {"b", 8, 16}}}}, h.Structs)
	require.Equal(t, map[string]Enumerator{
		"X_BIG": {"", 0xc0084e41}, "X_ONE": {"x_kind", 1}, "X_MINUS": {"x_kind", -1},
	}, h.Enums)
	for text, says := range map[string]string{
		"struct x { int a : 3; };":    "bit-fields",
		"union x { int a; long b; };": "only named structs",
		"enum { X };":                 "has no name",
		"struct x {":                  "compile",
	} {
		_, err := ReadHeader(t.TempDir(), write(t, "x.h", text), nil)
		require.ErrorContains(t, err, says, text)
	}
}

func TestReadPackage(t *testing.T) {
	dir := filepath.Dir(write(t, "p.go", "package p\nimport \"structs\"\n"+
		"const A = 2\ntype P struct { _ structs.HostLayout; X uint32; Y [2]uint64 }\ntype N int\n"))
	p, err := ReadPackage(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"A": 2}, p.Constants)
	require.Equal(t, map[string]Struct{"P": {24, []Field{{"X", 0, 4}, {"Y", 8, 16}}}}, p.Structs)
	for text, says := range map[string]string{
		"package p\ntype P struct { X int }": "HostLayout",
		"package p\nconst S = \"s\"":         "not an integer",
		"package p\nconst S = T":             "undefined",
		"package":                            "expected",
	} {
		_, err := ReadPackage(filepath.Dir(write(t, "p.go", text)))
		require.ErrorContains(t, err, says, text)
	}
}
