package mirror

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Names is how names of the header become names of the mirror. Members and
// structs change from snake case to camel case, members called rsvd are blank
// or Rsvd, and a constant may also stand in lower case, where the mirror keeps
// it to itself.
type Names struct {
	// Prefix is what the C names of structs start with.
	Prefix string
	// Initialisms are the words that stay in capitals, in lower case here.
	Initialisms []string
	// Constant returns the Go name of an enumerator; enum is empty for a macro.
	Constant func(enum, name string) string
}

// Camel turns A_WORD and a_word into AWord.
func (n *Names) Camel(snake string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(strings.ToLower(snake), "_") {
		if slices.Contains(n.Initialisms, word) {
			word = strings.ToUpper(word)
		} else if word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

func lowerFirst(s string) string {
	r := []rune(s)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}

// compareStruct returns what differs between a C struct and its mirror.
func (n *Names) compareStruct(name string, c, g Struct) []string {
	var diff []string
	if c.Size != g.Size {
		diff = append(diff, fmt.Sprintf("struct %s: %d bytes in C, %d in Go", name, c.Size, g.Size))
	}
	for i := range max(len(c.Fields), len(g.Fields)) {
		switch {
		case i >= len(c.Fields):
			diff = append(diff, fmt.Sprintf("struct %s: %s is only in Go", name, g.Fields[i].Name))
		case i >= len(g.Fields):
			diff = append(diff, fmt.Sprintf("struct %s: %s is only in C", name, c.Fields[i].Name))
		default:
			diff = append(diff, n.compareField(name, c.Fields[i], g.Fields[i])...)
		}
	}
	return diff
}

func (n *Names) compareField(name string, c, g Field) []string {
	want := n.Camel(c.Name)
	if c.Name == "rsvd" && g.Name == "_" {
		want = "_"
	}
	if want != g.Name || c.Offset != g.Offset || c.Size != g.Size {
		return []string{fmt.Sprintf("struct %s: C has %s at %d, %d bytes; Go has %s at %d, %d bytes",
			name, c.Name, c.Offset, c.Size, g.Name, g.Offset, g.Size)}
	}
	return nil
}

// CompareStructs returns what differs, whichever side it is missing on.
func (n *Names) CompareStructs(c, g map[string]Struct) []string {
	var diff []string
	seen := map[string]bool{}
	for name, s := range c {
		mirror := n.Camel(strings.TrimPrefix(name, n.Prefix))
		seen[mirror] = true
		if m, ok := g[mirror]; ok {
			diff = append(diff, n.compareStruct(mirror, s, m)...)
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

// CompareConstants returns what differs, whichever side it is missing on.
func (n *Names) CompareConstants(c map[string]Enumerator, g map[string]int64) []string {
	var diff []string
	seen := map[string]bool{}
	for name, e := range c {
		mirror := n.Constant(e.Enum, name)
		if _, ok := g[mirror]; !ok {
			mirror = lowerFirst(mirror)
		}
		seen[mirror] = true
		if v, ok := g[mirror]; !ok {
			diff = append(diff, fmt.Sprintf("%s of enum %s is only in C", name, e.Enum))
		} else if v != e.Value {
			diff = append(diff, fmt.Sprintf("%s is %d in C, %d in Go", name, e.Value, v))
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
