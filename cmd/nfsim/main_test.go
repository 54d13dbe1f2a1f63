package main

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		os.Exit(child(role))
	}
	goleak.VerifyTestMain(m)
}

// nfsim runs one command line to its end.
func nfsim(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	code, stdout, _ := nfsim("--help")
	require.Equal(t, exitOK, code)
	for _, want := range []string{"--vfio-user", "--no-mmap", "--target-timeout", "overreach", "docs/device-spec.md", "Exit codes"} {
		require.Contains(t, stdout, want)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, stdout, _ := nfsim("completion", shell)
		require.Equal(t, exitOK, code)
		require.Contains(t, stdout, "nfsim")
	}
	_, stdout, _ := nfsim("__complete", "--log-format", "")
	require.Contains(t, stdout, "text\njson\n")
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "with --vfio-user"},
		{[]string{"--vfio-use", "x"}, "unknown flag"},
		{[]string{"extra"}, "unknown command"},
		{[]string{"--vfio-user", "x", "--vectors", "many"}, "invalid argument"},
	} {
		code, stdout, stderr := nfsim(c.args...)
		require.Equal(t, exitUsage, code, c.args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.says)
	}
}
