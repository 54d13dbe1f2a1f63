package abi

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// headerPath is the C header this package mirrors.
const headerPath = "../../firmware/nfc_abi.h"

// layoutField is a member of a struct: where it lies and how many bytes it has.
type layoutField struct {
	name         string
	offset, size int64
}

// layoutStruct is a struct as a compiler laid it out.
type layoutStruct struct {
	size   int64
	fields []layoutField
}

// enumerator is a constant of the C header.
type enumerator struct {
	enum  string
	value int64
}

// cHeader is what the debug information says of the header.
type cHeader struct {
	structs map[string]layoutStruct
	enums   map[string]enumerator
}

// requireTool fails with what to install if a program is missing.
func requireTool(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	require.NoError(t, err, "%s is missing; install it with: apt-get install %s", name, debian)
	return path
}

// readHeader compiles the header with debug information and reads it back.
func readHeader(t *testing.T) cHeader {
	t.Helper()
	// Read by the test itself, so that the test cache notices an edit.
	text, err := os.ReadFile(headerPath)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nfc_abi.h"), text, 0o644))
	source, object := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout.o")
	require.NoError(t, os.WriteFile(source, []byte("#include \"nfc_abi.h\"\n"), 0o644))
	// Unused types count here: keep what gcc would drop.
	out, err := exec.Command(requireTool(t, "gcc", "gcc"), "-std=c11", "-gdwarf-4",
		"-fno-eliminate-unused-debug-types", "-c", "-o", object, source).CombinedOutput()
	require.NoError(t, err, "compile %s: %s", headerPath, out)
	file, err := elf.Open(object)
	require.NoError(t, err)
	defer file.Close()
	data, err := file.DWARF()
	require.NoError(t, err)
	return walkHeader(t, data)
}

// walkHeader collects the structs and enums that the header itself declares.
func walkHeader(t *testing.T, data *dwarf.Data) cHeader {
	t.Helper()
	h := cHeader{structs: map[string]layoutStruct{}, enums: map[string]enumerator{}}
	var files []*dwarf.LineFile
	r := data.Reader()
	for {
		e, err := r.Next()
		require.NoError(t, err)
		if e == nil {
			return h
		}
		switch e.Tag {
		case dwarf.TagCompileUnit:
			lines, err := data.LineReader(e)
			require.NoError(t, err)
			files = lines.Files()
		case dwarf.TagStructType, dwarf.TagUnionType, dwarf.TagEnumerationType:
			if declaredIn(e, files) == filepath.Base(headerPath) {
				typ, err := data.Type(e.Offset)
				require.NoError(t, err)
				require.NoError(t, h.add(typ))
			}
		}
	}
}

func declaredIn(e *dwarf.Entry, files []*dwarf.LineFile) string {
	i, ok := e.Val(dwarf.AttrDeclFile).(int64)
	if !ok || int(i) >= len(files) || files[i] == nil {
		return ""
	}
	return filepath.Base(files[i].Name)
}

func (h *cHeader) add(typ dwarf.Type) error {
	switch c := typ.(type) {
	case *dwarf.StructType:
		if c.Kind != "struct" || c.StructName == "" {
			return fmt.Errorf("%s %q: only named structs belong in the ABI", c.Kind, c.StructName)
		}
		s := layoutStruct{size: c.ByteSize}
		for _, f := range c.Field {
			if f.BitSize != 0 {
				return fmt.Errorf("%s.%s: bit-fields do not belong in the ABI", c.StructName, f.Name)
			}
			s.fields = append(s.fields, layoutField{f.Name, f.ByteOffset, f.Type.Size()})
		}
		h.structs[c.StructName] = s
	case *dwarf.EnumType:
		if c.EnumName == "" {
			return fmt.Errorf("an enum of the ABI has no name")
		}
		for _, v := range c.Val {
			h.enums[v.Name] = enumerator{c.EnumName, v.Val}
		}
	}
	return nil
}
