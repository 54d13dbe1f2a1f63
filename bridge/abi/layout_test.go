package abi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// How names of the header become names of the mirror:
//
//   - struct nfc_a_b is AB, member a_b is AB: snake case becomes camel case;
//   - the words of initialisms below stay in capitals;
//   - members called rsvd are blank or Rsvd;
//   - NFC_A_B is AB, or aB where the mirror keeps it to itself;
//   - exceptions are the two tables and the rules of constantName.
var initialisms = []string{"abi", "h2d", "d2h", "pfn", "ns", "ms", "cls", "ctm", "imem", "emem", "ok"}

// statusNames spells out what errno-like names cut short or run together.
var statusNames = map[string]string{
	"ETOOLARGE": "ErrTooLarge", "ENOTARGET": "ErrNoTarget", "ENOPROGRAM": "ErrNoProgram",
	"ENOMEM": "ErrNoMemory", "EINVAL": "ErrInvalid", "ENOTSUP": "ErrNotSupported",
	"EABI": "ErrABI", "EDMA": "ErrDMA", "OK": "OK", "STATUS_COUNT": "StatusCount",
}

func camel(snake string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(strings.ToLower(snake), "_") {
		if slices.Contains(initialisms, word) {
			word = strings.ToUpper(word)
		} else if word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

// constantName maps a C enumerator to its name in the mirror.
func constantName(enum, name string) string {
	name = strings.TrimPrefix(name, "NFC_")
	switch enum {
	case "nfc_limits": // NFC_ABI_MAJOR is abi.Major
		name = strings.TrimPrefix(name, "ABI_")
	case "nfc_status": // NFC_ECLOSED is abi.ErrClosed
		if special, ok := statusNames[name]; ok {
			return special
		}
		return "Err" + camel(name[1:])
	case "nfc_diagnostic_field": // abi.DiagCore is a shift: there is nothing else to it
		name = strings.TrimSuffix(name, "_SHIFT")
	case "nfc_diagnostic_level": // NFC_DIAG_SICK is abi.Sick
		name = strings.TrimPrefix(name, "DIAG_")
	}
	return camel(name)
}

func lowerFirst(s string) string {
	r := []rune(s)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}

// compareStruct returns what differs between a C struct and its mirror.
func compareStruct(name string, c, g layoutStruct) []string {
	var diff []string
	if c.size != g.size {
		diff = append(diff, fmt.Sprintf("struct %s: %d bytes in C, %d in Go", name, c.size, g.size))
	}
	for i := range max(len(c.fields), len(g.fields)) {
		switch {
		case i >= len(c.fields):
			diff = append(diff, fmt.Sprintf("struct %s: %s is only in Go", name, g.fields[i].name))
		case i >= len(g.fields):
			diff = append(diff, fmt.Sprintf("struct %s: %s is only in C", name, c.fields[i].name))
		default:
			diff = append(diff, compareField(name, c.fields[i], g.fields[i])...)
		}
	}
	return diff
}

func compareField(name string, c, g layoutField) []string {
	want := camel(c.name)
	if c.name == "rsvd" && g.name == "_" {
		want = "_"
	}
	if want != g.name || c.offset != g.offset || c.size != g.size {
		return []string{fmt.Sprintf("struct %s: C has %s at %d, %d bytes; Go has %s at %d, %d bytes",
			name, c.name, c.offset, c.size, g.name, g.offset, g.size)}
	}
	return nil
}

// compareStructs returns what differs, whichever side it is missing on.
func compareStructs(c, g map[string]layoutStruct) []string {
	var diff []string
	seen := map[string]bool{}
	for name, s := range c {
		mirror := camel(strings.TrimPrefix(name, "nfc_"))
		seen[mirror] = true
		if m, ok := g[mirror]; ok {
			diff = append(diff, compareStruct(mirror, s, m)...)
		} else {
			diff = append(diff, fmt.Sprintf("struct %s is only in C", name))
		}
	}
	for name := range g {
		if !seen[name] {
			diff = append(diff, fmt.Sprintf("struct %s is only in Go", name))
		}
	}
	slices.Sort(diff)
	return diff
}

// compareConstants returns what differs, whichever side it is missing on.
func compareConstants(c map[string]enumerator, g map[string]int64) []string {
	var diff []string
	seen := map[string]bool{}
	for name, e := range c {
		mirror := constantName(e.enum, name)
		if _, ok := g[mirror]; !ok {
			mirror = lowerFirst(mirror)
		}
		seen[mirror] = true
		if v, ok := g[mirror]; !ok {
			diff = append(diff, fmt.Sprintf("%s of enum %s is only in C", name, e.enum))
		} else if v != e.value {
			diff = append(diff, fmt.Sprintf("%s is %d in C, %d in Go", name, e.value, v))
		}
	}
	for name := range g {
		if !seen[name] {
			diff = append(diff, fmt.Sprintf("constant %s is only in Go", name))
		}
	}
	slices.Sort(diff)
	return diff
}

func TestMirrorHasTheLayoutOfTheHeader(t *testing.T) {
	c, g := readHeader(t), readMirror(t)
	require.Contains(t, c.structs, "nfc_slot")
	assert.Empty(t, compareStructs(c.structs, g.structs))
}

func TestMirrorHasTheConstantsOfTheHeader(t *testing.T) {
	c, g := readHeader(t), readMirror(t)
	require.Contains(t, c.enums, "NFC_ABI_MAJOR")
	assert.Empty(t, compareConstants(c.enums, g.constants))
}

// The comparison itself must be able to fail, each way.
func TestComparisonFindsDrift(t *testing.T) {
	slot := func(offset, size int64) map[string]layoutStruct {
		return map[string]layoutStruct{"nfc_slot": {64, []layoutField{{"header", offset, size}}}}
	}
	mirror := map[string]layoutStruct{"Slot": {64, []layoutField{{"Header", 0, 8}}}}
	assert.Empty(t, compareStructs(slot(0, 8), mirror))
	assert.Len(t, compareStructs(slot(8, 8), mirror), 1, "offset")
	assert.Len(t, compareStructs(slot(0, 4), mirror), 1, "member size")
	assert.Len(t, compareStructs(nil, mirror), 1, "struct only in Go")
	assert.Len(t, compareStructs(slot(0, 8), nil), 1, "struct only in C")
	longer := map[string]layoutStruct{"Slot": {72, append(mirror["Slot"].fields, layoutField{"_", 8, 64})}}
	assert.Len(t, compareStructs(slot(0, 8), longer), 2, "size and a member only in Go")

	one := map[string]enumerator{"NFC_TYPE_ACK": {"nfc_type", 4}}
	assert.Empty(t, compareConstants(one, map[string]int64{"TypeAck": 4}))
	assert.Len(t, compareConstants(one, map[string]int64{"TypeAck": 5}), 1, "value")
	assert.Len(t, compareConstants(one, nil), 1, "constant only in C")
	assert.Len(t, compareConstants(nil, map[string]int64{"typeAck": 4}), 1, "constant only in Go")
}

// Shifts are private to each side; this ties what the mirror does to what the
// header says.
func TestShiftsAreTheHeaders(t *testing.T) {
	c := readHeader(t)
	bit := func(name string) uint64 {
		e, ok := c.enums[name]
		require.True(t, ok, "%s is not in the header", name)
		return 1 << e.value
	}
	for _, row := range []struct {
		name string
		got  uint64
	}{
		{"NFC_HDR_TYPE_SHIFT", uint64(MakeHeader(1, 0, 0, 0, 0))},
		{"NFC_HDR_PHASE_SHIFT", uint64(Header(0).WithPhase(1))},
		{"NFC_HDR_LENGTH_SHIFT", uint64(MakeHeader(0, 1, 0, 0, 0))},
		{"NFC_HDR_EPOCH_SHIFT", uint64(MakeHeader(0, 0, 1, 0, 0))},
		{"NFC_HDR_SEQUENCE_SHIFT", uint64(MakeHeader(0, 0, 0, 1, 0))},
		{"NFC_HDR_CHANNEL_SHIFT", uint64(MakeHeader(0, 0, 0, 0, 1))},
		{"NFC_ENTRY_LENGTH_SHIFT", uint64(MakeEntry(0, 2))},
		{"NFC_ENTRY_OFFSET_SHIFT", uint64(MakeEntry(1, 1))},
		{"NFC_ENTRY_PFN_SHIFT", uint64(MakeEntry(PageSize, 1))},
		{"NFC_TAIL_NUMBER_SHIFT", MakeTail(0, 1)},
		{"NFC_TAIL_OUTSTANDING_SHIFT", MakeTail(1, 0)},
	} {
		assert.Equal(t, bit(row.name), row.got, row.name)
	}
	for name := range c.enums {
		if readings := strings.HasPrefix(name, "NFC_DIAG_") && strings.HasSuffix(name, "_SHIFT"); !readings {
			continue
		}
		d := Diagnostic(bit(name))
		switch name {
		case "NFC_DIAG_VALID_SHIFT":
			assert.True(t, d.Valid())
			assert.Equal(t, Normal, d.Worst(), "the valid bit is no reading")
		case "NFC_DIAG_SPARE_SHIFT":
			assert.Equal(t, Normal, d.Worst(), "a spare bit is no reading")
		default:
			assert.Equal(t, Sick, d.Worst(), name)
			assert.False(t, d.Valid(), name)
		}
	}
}
