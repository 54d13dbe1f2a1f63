package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// tests are those that may notice a change of a file.
type tests struct {
	in  string // the package, from the top of the tree; or the folder of C tests
	run string // pattern of go test -run; or the program of the C tests
}

// rules is the package that reads the tree itself: it is told of a changed file of C, which an overlay
// shows to compilers alone.
const rules = "internal/lint"

// errNotFound means that the tests passed over a change.
var errNotFound = errors.New("no test failed")

// errNotBuilt means that a changed tree does not compile.
var errNotBuilt = errors.New("it does not compile")

// hang bounds the tests of a change, which may make them wait for ever.
const hang = 10 * time.Minute

// failed is the line of a test that failed: of Go, of a test that ran at its time-out, of the C tests,
// and of a sanitizer.
var failed = regexp.MustCompile(`(?m)^\s*(?:--- FAIL: |\t?(?:panic: test timed out.*\n\s*running tests:\n\s*)|FAIL )(\w\S*(?: [a-z][^\n]*)?)`)

// try runs tests of a tree in which a file has another text. It returns the name of the first test
// that failed.
func (t tests) try(ctx context.Context, root, file, text string) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	if _, c := programs[t.in]; c {
		return t.tryC(ctx, root, file, text)
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	replacement, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	original := filepath.Join(root, filepath.FromSlash(file))
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replacement}})
	if err != nil {
		return "", err
	}
	err = errors.Join(os.WriteFile(replacement, []byte(text), 0o600), os.WriteFile(overlay, replace, 0o600))
	if err != nil {
		return "", err
	}
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout=9m", "-overlay", overlay, "-run", t.run, "./" + filepath.ToSlash(t.in)}
	if isC(file) && t.in == rules {
		args = append(args, "-args", "-changed", file+"="+replacement)
	}
	cmd := subprocess.Command(ctx, "go", args...)
	cmd.Dir = root
	output, err := cmd.CombinedOutput()
	if err == nil && strings.Contains(string(output), "no tests to run") {
		return "", fmt.Errorf("-run %s names no test", t.run)
	}
	return t.noticed(ctx, string(output), err)
}

// noticed returns the test that a failing run names.
func (t tests) noticed(ctx context.Context, output string, err error) (string, error) {
	name := failed.FindStringSubmatch(output)
	status := new(exec.ExitError)
	switch {
	case err == nil:
		return "", errNotFound
	case strings.Contains(output, "[build failed]") || strings.Contains(output, "[setup failed]"):
		return "", fmt.Errorf("%w: %w: %s", errNotBuilt, err, last(output))
	case name != nil:
		return name[1], nil
	case ctx.Err() != nil:
		return t.run + ", which does not end", nil
	case errors.As(err, &status) && status.ExitCode() > 128, strings.Contains(output, "signal: "), strings.Contains(output, "panic: "),
		strings.Contains(output, "runtime error: "), strings.Contains(output, "AddressSanitizer"):
		return t.run + ", which ends", nil
	}
	return "", fmt.Errorf("%w: %s", err, last(output))
}

// last returns the last line of a text.
func last(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
