package uapi

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/mirror"
)

var update = flag.Bool("update", false, "write the fields of docs/uapi.md, and add to testdata/frozen.txt")

const (
	documentPath = "../../../docs/uapi.md"
	frozenPath   = "testdata/frozen.txt"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

var (
	commentOf = regexp.MustCompile(`(?s)/\*\*\n \* struct (nfcomms_\w+) - (.*?)\n \*/`)
	memberOf  = regexp.MustCompile(`(?m)^ \* @(\w+): `)
)

// described are the structures in the order of the header, and the texts of their fields.
func described(header string) (order []string, about map[string]string, fields map[string]map[string]string) {
	about, fields = map[string]string{}, map[string]map[string]string{}
	for _, m := range commentOf.FindAllStringSubmatch(header, -1) {
		name, text := m[1], m[2]
		order = append(order, name)
		at := memberOf.FindAllStringSubmatchIndex(text, -1)
		about[name], _, _ = strings.Cut(text, "\n")
		fields[name] = map[string]string{}
		for i, a := range at {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			said, _, _ := strings.Cut(text[a[1]:end], "\n *\n")
			said = strings.ReplaceAll(said, "\n *", " ")
			fields[name][text[a[2]:a[3]]] = strings.ReplaceAll(strings.Join(strings.Fields(said), " "), "|", `\|`)
		}
	}
	return order, about, fields
}

// fieldTables are the fields of all structures.
func fieldTables(t *testing.T, c mirror.Header) string {
	t.Helper()
	order, about, fields := described(readFile(t, headerPath))
	assert.ElementsMatch(t, slices.Collect(maps.Keys(c.Structs)), order, "structures without a comment")
	var b strings.Builder
	for _, name := range order {
		s := c.Structs[name]
		fmt.Fprintf(&b, "\n### `struct %s`\n\n%d bytes: %s\n\n| offset | bytes | field | |\n|---|---|---|---|\n", name, s.Size, about[name])
		for _, f := range s.Fields {
			said, ok := fields[name][f.Name]
			assert.True(t, ok, "%s.%s has no text", name, f.Name)
			fmt.Fprintf(&b, "| %d | %d | `%s` | %s |\n", f.Offset, f.Size, f.Name, said)
		}
	}
	return b.String() + "\n"
}

func TestDocumentHasTheFields(t *testing.T) {
	const begin, end = "-args -update. -->\n", "<!-- end -->"
	c, _ := readBoth(t)
	text, want := readFile(t, documentPath), fieldTables(t, c)
	head, rest, ok := strings.Cut(text, begin)
	require.True(t, ok)
	_, tail, ok := strings.Cut(rest, end)
	require.True(t, ok)
	whole := head + begin + want + end + tail
	if *update {
		require.NoError(t, os.WriteFile(documentPath, []byte(whole), 0o600))
		return
	}
	assert.Equal(t, whole, text, "run go test ./internal/kdev/uapi -args -update")
}

// Each call and each opcode has a row with its numbers, and there are no other rows.
func TestDocumentHasTheCallsAndOpcodes(t *testing.T) {
	c, _ := readBoth(t)
	var want []string
	for name, e := range c.Enums {
		short := strings.TrimPrefix(name, "NFCOMMS_IOC_")
		switch {
		case name == "NFCOMMS_IOC_TYPE" || name == "NFCOMMS_OP_COUNT":
		case short != name:
			number := uint32(e.Value) //nolint:gosec // as the macro has it
			want = append(want, fmt.Sprintf("| `%s` | 0x%02x | `nfcomms_%s` | %d |", name, number&0xff, strings.ToLower(short), number>>16&0x3fff))
		case strings.HasPrefix(name, "NFCOMMS_OP_") && e.Enum == "nfcomms_opcode":
			want = append(want, fmt.Sprintf("| `%s` | %d |", name, e.Value))
		}
	}
	require.Len(t, want, 23)
	row := regexp.MustCompile("(?m)^\\| `NFCOMMS_IOC_\\w+` \\|[^|]*\\|[^|]*\\|[^|]*\\||^\\| `NFCOMMS_OP_\\w+` \\|[^|]*\\|")
	assert.ElementsMatch(t, want, row.FindAllString(readFile(t, documentPath), -1))
}

// numbers are those that programs are compiled with.
func numbers(c mirror.Header) []string {
	var lines []string
	for name, s := range c.Structs {
		for _, f := range s.Fields {
			if !strings.HasPrefix(f.Name, "rsvd") {
				lines = append(lines, fmt.Sprintf("%s.%s at %d size %d", name, f.Name, f.Offset, f.Size))
			}
		}
	}
	for name, e := range c.Enums {
		if name != "NFCOMMS_UAPI_MINOR" && !strings.HasSuffix(name, "_COUNT") {
			lines = append(lines, fmt.Sprintf("%s = %d", name, e.Value))
		}
	}
	slices.Sort(lines)
	return lines
}

// A number that was is as it was; -update adds those that are new.
func TestNumbersAreFrozen(t *testing.T) {
	c, _ := readBoth(t)
	have := numbers(c)
	frozen := slices.Collect(strings.SplitSeq(strings.TrimSpace(readFile(t, frozenPath)), "\n"))
	for _, line := range frozen {
		assert.True(t, slices.Contains(have, line), "programs are compiled with %s", line)
	}
	if *update && !t.Failed() {
		require.NoError(t, os.WriteFile(frozenPath, []byte(strings.Join(have, "\n")+"\n"), 0o600))
		return
	}
	for _, line := range have {
		assert.True(t, slices.Contains(frozen, line), "new: %s: run go test ./internal/kdev/uapi -args -update", line)
	}
}
