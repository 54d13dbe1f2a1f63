package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// file is a YAML file that is being read.
type file struct {
	name  string
	known map[string]form
	found map[string]given
	wrong []error
}

// parseFile adds what a YAML file says to found. It returns all that is wrong,
// each with its line.
func parseFile(name string, data []byte, known map[string]form, found map[string]given) error {
	f := &file{name: name, known: known, found: found}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil // empty
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		f.refuse(&more, "one document is all it may hold")
	}
	f.section("", doc.Content[0])
	return errors.Join(f.wrong...)
}

func (f *file) refuse(n *yaml.Node, format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Errorf("%s:%d: %s", f.name, n.Line, fmt.Sprintf(format, args...)))
}

// section reads a mapping whose keys are settings or sections of their own.
func (f *file) section(path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return // everything below is commented out
	}
	if n.Kind != yaml.MappingNode {
		f.refuse(n, "%s holds settings by name, not %s", orFile(path), kindOf(n))
		return
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if first := seen[k.Value]; first != 0 {
			f.refuse(k, "%q is there already, in line %d", path+k.Value, first)
			continue
		}
		seen[k.Value] = k.Line
		f.entry(path+k.Value, k, v)
	}
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return strings.TrimSuffix(path, ".")
}

// entry reads one key of a section.
func (f *file) entry(key string, k, v *yaml.Node) {
	form, known := f.known[key]
	switch {
	case known:
		if values, ok := f.values(key, form, v); ok {
			f.found[key] = given{values, fmt.Sprintf("%s:%d", f.name, k.Line)}
		}
	case f.isSection(key):
		f.section(key+".", v)
	default:
		f.refuse(k, "unknown key %q", key)
	}
}

func (f *file) isSection(key string) bool {
	for k := range f.known {
		if strings.HasPrefix(k, key+".") {
			return true
		}
	}
	return false
}

// values reads the value of a setting in its form.
func (f *file) values(key string, want form, n *yaml.Node) ([]string, bool) {
	switch {
	case want == scalar && isValue(n):
		return []string{n.Value}, true
	case want == list && n.Kind == yaml.SequenceNode:
		return f.items(key, n.Content)
	case want == pairs && n.Kind == yaml.MappingNode:
		return f.named(key, n)
	case want == pairs && isValue(n) && n.Value == auto:
		return []string{auto}, true
	}
	f.refuse(n, "%s wants %s, not %s", key, [...]string{"a value", "a list", "names with values"}[want], kindOf(n))
	return nil, false
}

func (f *file) items(key string, nodes []*yaml.Node) ([]string, bool) {
	all := []string{}
	for _, n := range nodes {
		if !isValue(n) {
			f.refuse(n, "%s wants a list of values, not %s", key, kindOf(n))
			return nil, false
		}
		all = append(all, n.Value)
	}
	return all, true
}

func (f *file) named(key string, n *yaml.Node) ([]string, bool) {
	all := []string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if !isValue(k) || !isValue(v) {
			f.refuse(k, "%s wants a value for each name", key)
			return nil, false
		}
		if strings.Contains(k.Value, "=") {
			f.refuse(k, "%s: %q is no name", key, k.Value)
			return nil, false
		}
		all = append(all, k.Value+"="+v.Value)
	}
	return all, true
}

// isValue is true for a scalar that says something.
func isValue(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag != "!!null" }

func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "names with values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case isValue(n):
		return "a value"
	}
	return "nothing"
}

// YAML returns the configuration as a file, each setting with its help and
// its source. Reading it again gives the same configuration.
func (l *Loaded) YAML() ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range l.settings() {
		at := root
		section, name, nested := strings.Cut(s.key, ".")
		if nested {
			at = below(root, section)
		} else {
			name = section
		}
		from := l.from[s.key]
		if from == "" {
			from = "default"
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: name, HeadComment: s.help + " (" + from + ")"}
		at.Content = append(at.Content, key, s.node())
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	err := enc.Encode(root)
	return out.Bytes(), errors.Join(err, enc.Close())
}

// below returns the section of a name, which is the last if it is there.
func below(root *yaml.Node, name string) *yaml.Node {
	if n := len(root.Content); n > 0 && root.Content[n-2].Value == name {
		return root.Content[n-1]
	}
	section := &yaml.Node{Kind: yaml.MappingNode}
	root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, section)
	return section
}

// node returns the value of a setting in its form.
func (s *setting) node() *yaml.Node {
	value := func(v string) *yaml.Node {
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: v}
		if s.kind != "bool" && s.kind != "int" {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n
	}
	switch s.form {
	case list:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, v := range s.get() {
			n.Content = append(n.Content, value(v))
		}
		return n
	case pairs:
		if slices.Equal(s.get(), []string{auto}) {
			return value(auto)
		}
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, v := range s.get() {
			name, text, _ := strings.Cut(v, "=")
			n.Content = append(n.Content, value(name), value(text))
		}
		return n
	}
	return value(s.get()[0])
}
