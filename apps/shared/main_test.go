package main

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain also plays the other processes.
func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) != "" {
		exit(roles[os.Args[1]](os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// TestDemo is the demonstration in short.
func TestDemo(t *testing.T) {
	var out bytes.Buffer
	o := options{length: 100 * time.Millisecond, size: 256 << 10}
	require.NoError(t, o.demo(t.Context(), &out))
	for _, want := range []string{"kill -9 B", "takes the place of B", "A had no error", "A, as B was killed", "memcpy", "a UNIX socket"} {
		require.Contains(t, out.String(), want)
	}
}

// TestCarryFindsWhatIsWrong: a byte that changed, and one that did not come.
func TestCarryFindsWhatIsWrong(t *testing.T) {
	sent, got := make([]byte, 10_000), make([]byte, 10_000)
	always := func() bool { return true }
	_, err := carry(sent, got, func() error {
		copy(got, sent)
		got[9999]++
		return nil
	}, always)
	require.ErrorContains(t, err, "changed")
	_, err = carry(sent, got, func() error { return nil }, always)
	require.ErrorContains(t, err, "changed")
	bad := errors.New("bad")
	m, err := carry(sent, got, func() error { return bad }, always)
	require.ErrorIs(t, err, bad)
	require.Zero(t, m.Transfers)
}
