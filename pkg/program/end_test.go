//go:build unix

package program

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBuildEndsWithItsContext: a build returns soon after its context ended, although a process that
// the compiler started keeps the compiler's output open; that process ends, and leaves no files.
func TestBuildEndsWithItsContext(t *testing.T) {
	dir, temporary := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	pipe, compiler := filepath.Join(dir, "pipe"), filepath.Join(dir, "cc")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.NoError(t, os.WriteFile(compiler, []byte("#!/bin/sh\nmktemp >/dev/null\nexec 3>"+pipe+"\nsleep 90 &\nwait\n"), 0o700))

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no more")
	started := make(chan *os.File, 1) // one file
	go func() {
		f, _ := os.Open(pipe) // until the compiler opens it
		cancel(why)
		started <- f
	}()
	begin := time.Now()
	_, err := Build(ctx, files("program.c", ""), Options{Compiler: compiler})
	require.ErrorIs(t, err, why)
	require.Less(t, time.Since(begin), time.Minute)
	f := <-started
	defer f.Close()
	_, err = f.Read(make([]byte, 1)) // until the last process that has it open has ended
	require.ErrorIs(t, err, io.EOF)
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}
