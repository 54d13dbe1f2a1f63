//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFirstVersionIsFrozen: the program of the first version of the ioctl interface and its header
// stay as they were. A change of one of them breaks every program that was built since.
func TestFirstVersionIsFrozen(t *testing.T) {
	for name, want := range map[string]string{
		"nfcomms.h":    "05ef9d542033bfb6995d9a133017075fd6115cb5e9373f5060eb824edc1a9b2a",
		"first_test.c": "d07cf9fe61c796733bf33c1239dd6b0753191cf31e4f286c88f2903a2808bcab",
	} {
		text, err := os.ReadFile(filepath.Join("c", "first", name))
		require.NoError(t, err)
		sum := sha256.Sum256(text)
		require.Equal(t, want, hex.EncodeToString(sum[:]), name)
	}
}
