package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// try runs the tests of a tree with the mistake in it. It returns the first test that failed; a
// mistake that does not compile is an error.
func (m mistake) try(ctx context.Context, root string) (how string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", err
	}
	wrong, err := m.mutated(string(text))
	if err != nil {
		return "", err
	}
	in := m.in
	if in == "" {
		in = filepath.Dir(m.file)
	}
	return tests{in, m.test}.try(ctx, root, m.file, wrong)
}
