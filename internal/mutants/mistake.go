package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// mistake is one change of one file, and the tests that must notice it.
type mistake struct {
	what string // the wrong statement that a report would make
	file string // from the top of the tree
	from string // text that occurs once in the file
	to   string
	test string // pattern of go test -run, in the package of the file
	in   string // package of the tests, where it is another
}

// mutated returns the text of the file with the mistake in it.
func (m mistake) mutated(text string) (string, error) {
	if n := strings.Count(text, m.from); n != 1 || m.from == m.to {
		return "", fmt.Errorf("%q occurs %d times in %s, not once", m.from, n, m.file)
	}
	return strings.Replace(text, m.from, m.to, 1), nil
}

// failed is the line of a test that failed.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// errNotFound means that the tests passed over a mistake.
var errNotFound = errors.New("no test failed")

// try runs the tests of a tree with the mistake in it. It returns the first test that failed; a
// mistake that does not compile is an error.
func (m mistake) try(ctx context.Context, root string) (how string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	original := filepath.Join(root, filepath.FromSlash(m.file))
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	wrong, err := m.mutated(string(text))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	replacement, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err != nil {
		return "", err
	}
	err = errors.Join(os.WriteFile(replacement, []byte(wrong), 0o600), os.WriteFile(overlay, replace, 0o600))
	if err != nil {
		return "", err
	}
	in := m.in
	if in == "" {
		in = filepath.Dir(m.file)
	}
	cmd := subprocess.Command(ctx, "go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-run", m.test, "./"+filepath.ToSlash(in))
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	name := failed.FindStringSubmatch(string(out))
	switch {
	case err == nil && strings.Contains(string(out), "no tests to run"):
		return "", fmt.Errorf("-run %s names no test", m.test)
	case err == nil:
		return "", errNotFound
	case name == nil:
		return "", fmt.Errorf("%w: %s", err, last(string(out)))
	}
	return name[1], nil
}

// last returns the last line of a text.
func last(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
