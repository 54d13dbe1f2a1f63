package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// copied is the tree of C sources whose files are changed: a copy, so that nobody finds a change in
// the tree itself. It stays, so that a run compiles only what differs.
const copied = "bin/mutants"

// sanitized is the folder of programs that are built as make test-c builds them.
const sanitized = "asan/"

// programs are the folders of C tests, and the argument of their programs.
var programs = map[string]string{"firmware/test": "bridge/abi/testdata", "kmod/test": "kmod"}

// limited is a command of the shell that runs its arguments for 8 seconds of processor time, and keeps
// the first MB of output. A change may make a test run for ever; other work does not use up that time.
const limited = `set -o pipefail; ulimit -t 8; "$@" 2>&1 | head -c 1000000`

// copyTree makes the copy the same as the tree.
func copyTree(root string) error {
	for _, folder := range []string{"firmware", "kmod/core", "kmod/test", "bridge/abi/testdata", "internal/sim/testdata"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "build":
				return fs.SkipDir
			case d.IsDir() || !d.Type().IsRegular() || strings.HasSuffix(path, ".go"):
				return nil
			}
			from, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			return update(path, filepath.Join(root, copied, from))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// update copies a file that differs.
func update(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o644))
}

// tryC builds a program of C tests in the copy with one file changed, and runs it.
func (t tests) tryC(ctx context.Context, root, file, text string) (how string, err error) {
	path := filepath.Join(root, copied, filepath.FromSlash(file))
	original, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(path, original, 0o644)) }()
	folder := filepath.Join(root, copied, filepath.FromSlash(t.in))
	// Without sanitizers and optimisation a program is built in a moment. The address sanitizer finds a
	// loop that goes one too far.
	target, with := "build/"+t.run, "SANITIZE=-O0 -w"
	if strings.HasPrefix(t.run, sanitized) {
		target, with = t.run, "BUILD="+strings.TrimSuffix(sanitized, "/")
	}
	output, err := subprocess.Command(ctx, "make", "-s", "-C", folder, with, target).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %w: %s", errNotBuilt, err, last(string(output)))
	}
	program := filepath.Join(folder, target)
	if t.run == "talk" {
		return converse(root, t.in, program)
	}
	cmd := subprocess.Command(ctx, "bash", "-c", limited, "bash", program, filepath.Join(root, copied, filepath.FromSlash(programs[t.in])))
	cmd.Dir = folder
	output, err = cmd.CombinedOutput()
	how, err = t.noticed(ctx, string(output), err)
	if how != "" && !strings.HasPrefix(how, t.run) {
		how = t.run + ": " + how
	}
	return how, err
}

// isC reports whether a file is C.
func isC(file string) bool { return slices.Contains([]string{".c", ".h"}, filepath.Ext(file)) }
