package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// namedServer is a context: a server with a name.
type namedServer struct {
	name string
	server
}

// contextFile is the file of --config.
type contextFile struct {
	path string
	// current is the name of the context that commands use; empty for none.
	current string
	// contexts are in the order of their names.
	contexts []namedServer
	text     []byte
	// root is the mapping of the file; nil if the file is empty.
	root *yaml.Node
}

const (
	// maxContextFile is the largest file that is read, in bytes.
	maxContextFile = 1 << 20
	// maxContexts is how many servers --all may have to ask at once.
	maxContexts = 1000
)

// contextName is the form of the name of a context.
var contextName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// readContexts reads the file of contexts. Only root and this user may be able to change it, since
// it selects the servers that commands connect to and trust.
func readContexts(path string) (*contextFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usagef("contexts: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, usagef("contexts: %s is not a regular file", path)
	}
	if o := ownerOf(info); o != nobody {
		switch {
		case o.uid != 0 && o.uid != os.Geteuid():
			return nil, usagef("contexts: %s belongs to uid %d, and to neither root nor you (chown it)", path, o.uid)
		case info.Mode().Perm()&0o022 != 0:
			return nil, usagef("contexts: others may write to %s, mode %04o (chmod go-w %s)", path, info.Mode().Perm(), path)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("contexts: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxContextFile+1))
	if err != nil {
		return nil, usagef("contexts: %w", err)
	}
	if len(text) > maxContextFile {
		return nil, usagef("contexts: %s has more than %d bytes", path, maxContextFile)
	}
	return parseContexts(path, text)
}

// parseContexts reads the text of the file.
func parseContexts(path string, text []byte) (*contextFile, error) {
	c := &contextFile{path: path, text: text}
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return c, nil
	} else if err != nil {
		return nil, usagef("%s: %w", path, err)
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, usagef("%s: there is more than one document in it", path)
	}
	root := doc.Content[0]
	if root.Tag == "!!null" { // comments alone
		return c, nil
	}
	c.root = root
	err := c.mapping(root, "the file", func(key string, value *yaml.Node) (err error) {
		switch key {
		case "current":
			c.current, err = c.scalar(key, value)
			return err
		case "contexts":
			return c.mapping(value, key, c.add)
		}
		return c.wrong(value, "unknown key %q (there are current and contexts)", key)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(c.contexts, func(a, b namedServer) int { return strings.Compare(a.name, b.name) })
	return c, nil
}

// wrong is the error about a place in the file.
func (c *contextFile) wrong(n *yaml.Node, format string, args ...any) error {
	return usagef("%s:%d: %w", c.path, n.Line, fmt.Errorf(format, args...))
}

// mapping calls do for each key of a mapping, and refuses a key that is there twice.
func (c *contextFile) mapping(n *yaml.Node, name string, do func(key string, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return c.wrong(n, "%s holds names with values", name)
	}
	seen := make(map[string]bool)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return c.wrong(key, "a key of %s is not a word", name)
		}
		if seen[key.Value] {
			return c.wrong(key, "%q is there already", key.Value)
		}
		seen[key.Value] = true
		if err := do(key.Value, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the text of a value.
func (c *contextFile) scalar(key string, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		return "", c.wrong(n, "%s wants a value", key)
	}
	return n.Value, nil
}

// add reads a context. Its keys have the names of the flags that they stand for.
func (c *contextFile) add(name string, n *yaml.Node) error {
	switch {
	case !contextName.MatchString(name):
		return c.wrong(n, "%q is no name of a context: up to 63 letters, digits, points, lines and dashes", name)
	case len(c.contexts) == maxContexts:
		return c.wrong(n, "there are more than %d contexts", maxContexts)
	}
	s := namedServer{name: name}
	texts := s.texts()
	err := c.mapping(n, name, func(key string, value *yaml.Node) (err error) {
		text, ok := texts[key]
		if !ok {
			return c.wrong(value, "unknown key %q of context %s (there are %s)", key, name, strings.Join(serverFlags, ", "))
		}
		if *text, err = c.scalar(key, value); err == nil && slices.Contains(fileFlags, key) && !filepath.IsAbs(*text) {
			*text = filepath.Join(filepath.Dir(c.path), *text)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case s.address == "":
		return c.wrong(n, "context %s has no address", name)
	case (s.tls.cert == "") != (s.tls.key == ""):
		return c.wrong(n, "tls-cert and tls-key of context %s go together", name)
	}
	c.contexts = append(c.contexts, s)
	return nil
}

// find returns the context of a name.
func (c *contextFile) find(name string) (namedServer, error) {
	i := slices.IndexFunc(c.contexts, func(s namedServer) bool { return s.name == name })
	if i >= 0 {
		return c.contexts[i], nil
	}
	var like []string
	for _, s := range c.contexts {
		if distance(name, s.name) <= max(1, len(s.name)/3) {
			like = append(like, s.name)
		}
	}
	return namedServer{}, usagef("no context %q in %s%s", name, c.path, didYouMean(like[:min(3, len(like))]))
}

// use makes a context the current one. It changes that line of the file and nothing else.
func (c *contextFile) use(name string) error {
	if _, err := c.find(name); err != nil {
		return err
	}
	path, err := filepath.EvalSymlinks(c.path)
	if err != nil {
		return err
	}
	text := c.withCurrent(name)
	if again, err := parseContexts(c.path, text); err != nil || again.current != name || len(again.contexts) != len(c.contexts) {
		return usagef("%s is not written in lines that a program can change: set current in it yourself", c.path)
	}
	return replaceFile(path, text)
}

// withCurrent returns the text of the file with another current context.
func (c *contextFile) withCurrent(name string) []byte {
	lines := strings.SplitAfter(string(c.text), "\n")
	at, old := c.root.Content[0].Line-1, 0
	line := "current: " + name
	for i := 0; i < len(c.root.Content); i += 2 {
		if key, value := c.root.Content[i], c.root.Content[i+1]; key.Value == "current" {
			at, old = key.Line-1, 1
			line = strings.TrimSuffix(line+" "+value.LineComment, " ")
		}
	}
	return []byte(strings.Join(slices.Replace(lines, at, at+old, line+"\n"), ""))
}

// replaceFile gives a file another text, at once and with the mode that it has.
func replaceFile(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".nfctl-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, ignoreGone(os.Remove(f.Name())))
	}
	return nil
}

// ignoreGone takes the removal of a file that is not there for done.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
