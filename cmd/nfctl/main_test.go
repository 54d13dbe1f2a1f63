package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// leakFree runs the tests and then looks for goroutines that they left.
type leakFree struct{ m *testing.M }

func (l leakFree) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(leakFree{m}, map[string]func(){"nfctl": main})
}

// watchdog bounds what would otherwise hang.
const watchdog = time.Minute

// result is what a command line did.
type result struct {
	code     int
	out, err string
}

// nfctl runs one command line in this process.
func nfctl(ctx context.Context, t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, args, streams{strings.NewReader(""), &out, &errs}, func(string) string { return "" })
	return result{code, out.String(), errs.String()}
}

// exitNamed returns the exit code of a name.
func exitNamed(name string) (int, bool) {
	i := slices.IndexFunc(exitTable, func(r exitRow) bool { return r.name == name })
	if i < 0 {
		return 0, false
	}
	return exitTable[i].code, true
}

func TestExitTable(t *testing.T) {
	codes, names := map[int]bool{}, map[string]bool{}
	for _, r := range exitTable {
		require.False(t, codes[r.code] || names[r.name], "%d %s stands twice", r.code, r.name)
		codes[r.code], names[r.name] = true, true
	}
	for _, code := range grpcCodes {
		require.True(t, codes[code], code)
	}
	for _, s := range sentinelCodes {
		require.True(t, codes[s.code], s.err)
	}
}

// TestEveryExitCodeIsSeen holds the scripts and tests to the table.
func TestEveryExitCodeIsSeen(t *testing.T) {
	var scripts strings.Builder
	entries, err := os.ReadDir("testdata/script")
	require.NoError(t, err)
	for _, e := range entries {
		text, err := os.ReadFile("testdata/script/" + e.Name())
		require.NoError(t, err)
		scripts.Write(text)
	}
	elsewhere := []int{exitFailed, exitInterrupted, exitPipe} // see follow_test.go
	for _, r := range exitTable {
		if !strings.Contains(scripts.String(), "exits "+r.name+" ") && !slices.Contains(elsewhere, r.code) {
			t.Errorf("no script ends with %s", r.name)
		}
	}
}
