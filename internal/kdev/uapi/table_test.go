package uapi

import (
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

// tablePath is a C header that names all calls, structures and fields, for a
// program that makes calls at random.
const tablePath = "../../vmtest/c/uapi_table.h"

const tableHead = `/* SPDX-License-Identifier: MIT */
/*
 * Calls, structures and fields of kmod/uapi/nfcomms.h. DO NOT EDIT: it is made by
 * go test ./internal/kdev/uapi -args -update
 */
#ifndef UAPI_TABLE_H
#define UAPI_TABLE_H

#include "uapi.h"

/* clang-format off */
`

var (
	sizeOf    = regexp.MustCompile(`^(?:in: )?sizeof\(struct (nfcomms_\w+)\)`)
	addressOf = regexp.MustCompile(`^address of (?:the )?struct (nfcomms_\w+)`)
	enumOf    = regexp.MustCompile(`enum (nfcomms_\w+)`)
	wordOf    = regexp.MustCompile(`\bNFCOMMS_\w+`)
	// A text that is a constant, or begins with a list of them, and not with a condition.
	constants = regexp.MustCompile(`^NFCOMMS_\w+(,|$)`)
)

// choices are the constants that the text of a field names, by themselves or by their enum.
func choices(c mirror.Header, text string) []string {
	var names []string
	for name, e := range c.Enums {
		named := e.Enum != "" && slices.Contains(wordOf.FindAllString(text, -1), name)
		for _, m := range enumOf.FindAllStringSubmatch(text, -1) {
			named = named || e.Enum == m[1]
		}
		if named && !strings.HasSuffix(name, "_COUNT") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return int(c.Enums[a].Value-c.Enums[b].Value)*2 + strings.Compare(a, b)
	})
	return names
}

// kindOf returns how a field is filled: a macro of uapi.h and its last arguments.
func kindOf(c mirror.Header, f mirror.Field, about, text string) (macro, more string) {
	in := strings.HasPrefix(text, "in: ")
	if m := sizeOf.FindStringSubmatch(text); m != nil {
		return "SIZE", m[1]
	}
	if m := addressOf.FindStringSubmatch(text); m != nil {
		return "ADDRESS", m[1]
	}
	all := choices(c, text)
	switch {
	case strings.HasPrefix(f.Name, "rsvd"), strings.HasPrefix(text, "out"), strings.HasSuffix(about, "Out.") && !in:
		return "ZERO", ""
	case f.Size > 8:
		return "BYTES", ""
	case f.Name == "address":
		return "MEMORY", ""
	case f.Name == "fd":
		return "DESCRIPTOR", ""
	case len(all) > 0 && (enumOf.MatchString(text) || constants.MatchString(text)):
		return "CHOICE", strings.Join(all, ", ")
	}
	return "NUMBER", ""
}

// table is what tablePath has to contain.
func table(t *testing.T, c mirror.Header) string {
	t.Helper()
	order, about, fields := described(readFile(t, headerPath))
	b := strings.Builder{}
	b.WriteString(tableHead)
	var calls, requests strings.Builder
	for _, name := range order {
		fmt.Fprintf(&b, "\nstatic const struct uapi_field %s_fields[] = {\n", name)
		for _, f := range c.Structs[name].Fields {
			macro, more := kindOf(c, f, about[name], fields[name][f.Name])
			if more != "" {
				more = ", " + more
			}
			fmt.Fprintf(&b, "\tUAPI_%s(%s, %s%s),\n", macro, name, f.Name, more)
		}
		b.WriteString("};\n")
		if strings.HasPrefix(name, "nfcomms_request_") {
			fmt.Fprintf(&requests, "\tUAPI_STRUCT(0, %s),\n", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Enums)) {
		short, ok := strings.CutPrefix(name, "NFCOMMS_IOC_")
		if ok && short != "TYPE" {
			fmt.Fprintf(&calls, "\tUAPI_STRUCT(%s, nfcomms_%s),\n", name, strings.ToLower(short))
		}
	}
	fmt.Fprintf(&b, "\nstatic const struct uapi_struct uapi_calls[] = {\n%s};\n", calls.String())
	fmt.Fprintf(&b, "\n/* Payloads of a CONTROL. */\nstatic const struct uapi_struct uapi_requests[] = {\n%s};\n", requests.String())
	b.WriteString("\n#endif\n")
	return b.String()
}

func TestTableOfTheFuzzerIsThatOfTheHeader(t *testing.T) {
	c, _ := readBoth(t)
	want := table(t, c)
	if *update {
		require.NoError(t, os.WriteFile(tablePath, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, readFile(t, tablePath), "run go test ./internal/kdev/uapi -args -update")
}

// A field that is new, and one that an enum describes, get what their text says.
func TestKindsOfFields(t *testing.T) {
	c := mirror.Header{Enums: map[string]mirror.Enumerator{
		"NFCOMMS_X_B": {Enum: "nfcomms_x", Value: 2}, "NFCOMMS_X_A": {Enum: "nfcomms_x", Value: 1}, "NFCOMMS_X_COUNT": {Enum: "nfcomms_x", Value: 3},
		"NFCOMMS_Y": {Enum: "nfcomms_y", Value: 7},
	}}
	for text, want := range map[string]string{
		"sizeof(struct nfcomms_op), the distance": "SIZE nfcomms_op", "in: sizeof(struct nfcomms_info)": "SIZE nfcomms_info",
		"address of the struct nfcomms_op; its": "ADDRESS nfcomms_op", "out: how many": "ZERO ", "bytes": "NUMBER ",
		"enum nfcomms_x": "CHOICE NFCOMMS_X_A, NFCOMMS_X_B", "NFCOMMS_Y, NFCOMMS_X_A": "CHOICE NFCOMMS_X_A, NFCOMMS_Y",
		"NFCOMMS_Y: of the first byte": "NUMBER ",
	} {
		macro, more := kindOf(c, mirror.Field{Name: "novel", Size: 4}, "", text)
		assert.Equal(t, want, macro+" "+more, text)
	}
}
