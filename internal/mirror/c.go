package mirror

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Field is a member of a struct: where it lies and how many bytes it has.
type Field struct {
	Name         string
	Offset, Size int64
}

// Struct is a struct as a compiler laid it out.
type Struct struct {
	Size   int64
	Fields []Field
}

// Enumerator is a constant of a C header. Enum is empty for a macro.
type Enumerator struct {
	Enum  string
	Value int64
}

// Header is what a compiler says of a C header.
type Header struct {
	Structs map[string]Struct
	Enums   map[string]Enumerator
}

// macroPrefix is put before the name of a macro, which could not name an
// enumerator.
const (
	macroPrefix = "value_of_"
	macroEnum   = "macros_of_the_header"
)

// ReadHeader compiles a header with debug information and reads it back, in
// the empty folder dir. Macros that match the expression are constants too. It
// needs gcc.
func ReadHeader(dir, header string, macros *regexp.Regexp) (Header, error) {
	text, err := os.ReadFile(header)
	if err != nil {
		return Header{}, err
	}
	name := filepath.Base(header)
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		return Header{}, err
	}
	source, object := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout.o")
	if err := os.WriteFile(source, []byte(layoutSource(name, string(text), macros)), 0o600); err != nil {
		return Header{}, err
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		return Header{}, fmt.Errorf("%w; install it with: apt-get install gcc", err)
	}
	// Unused types count here: keep what gcc would drop.
	out, err := exec.Command("gcc", "-std=gnu11", "-gdwarf-4",
		"-fno-eliminate-unused-debug-types", "-c", "-o", object, source).CombinedOutput()
	if err != nil {
		return Header{}, fmt.Errorf("compile %s: %w: %s", header, err, out)
	}
	file, err := elf.Open(object)
	if err != nil {
		return Header{}, err
	}
	defer file.Close()
	data, err := file.DWARF()
	if err != nil {
		return Header{}, err
	}
	return walk(data, name)
}

// layoutSource includes the header and names its macros once more, in an enum.
func layoutSource(name, text string, macros *regexp.Regexp) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#include %q\n", name)
	if macros == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "enum %s {\n", macroEnum)
	for _, m := range regexp.MustCompile(`(?m)^#define[ \t]+(\w+)[ \t]`).FindAllStringSubmatch(text, -1) {
		if macros.MatchString(m[1]) {
			fmt.Fprintf(&b, "\t%s%s = %s,\n", macroPrefix, m[1], m[1])
		}
	}
	b.WriteString("};\n")
	return b.String()
}

// walk collects the structs and enums that the header itself declares.
func walk(data *dwarf.Data, header string) (Header, error) {
	h := Header{Structs: map[string]Struct{}, Enums: map[string]Enumerator{}}
	var files []*dwarf.LineFile
	for r := data.Reader(); ; {
		e, err := r.Next()
		if err != nil || e == nil {
			return h, err
		}
		switch e.Tag {
		case dwarf.TagCompileUnit:
			lines, err := data.LineReader(e)
			if err != nil {
				return h, err
			}
			files = lines.Files()
		case dwarf.TagStructType, dwarf.TagUnionType, dwarf.TagEnumerationType:
			if name, _ := e.Val(dwarf.AttrName).(string); name != macroEnum && declaredIn(e, files) != header {
				continue
			}
			typ, err := data.Type(e.Offset)
			if err == nil {
				err = h.add(typ)
			}
			if err != nil {
				return h, err
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

func (h *Header) add(typ dwarf.Type) error {
	switch c := typ.(type) {
	case *dwarf.StructType:
		if c.Kind != "struct" || c.StructName == "" {
			return fmt.Errorf("%s %q: only named structs belong in an ABI", c.Kind, c.StructName)
		}
		s := Struct{Size: c.ByteSize}
		for _, f := range c.Field {
			if f.BitSize != 0 {
				return fmt.Errorf("%s.%s: bit-fields do not belong in an ABI", c.StructName, f.Name)
			}
			s.Fields = append(s.Fields, Field{f.Name, f.ByteOffset, f.Type.Size()})
		}
		h.Structs[c.StructName] = s
	case *dwarf.EnumType:
		if c.EnumName == "" {
			return fmt.Errorf("an enum of an ABI has no name")
		}
		for _, v := range c.Val {
			if name, macro := strings.CutPrefix(v.Name, macroPrefix); macro {
				h.Enums[name] = Enumerator{"", v.Val}
			} else {
				h.Enums[v.Name] = Enumerator{c.EnumName, v.Val}
			}
		}
	}
	return nil
}
