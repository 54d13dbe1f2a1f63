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

// TestOldHeadersAreFrozen: headers of the ioctl interface that programs were built with stay as
// they were.
func TestOldHeadersAreFrozen(t *testing.T) {
	for name, want := range map[string]string{
		"interface2/nfcomms.h": "05ef9d542033bfb6995d9a133017075fd6115cb5e9373f5060eb824edc1a9b2a",
	} {
		text, err := os.ReadFile(filepath.Join("c", name))
		require.NoError(t, err)
		sum := sha256.Sum256(text)
		require.Equal(t, want, hex.EncodeToString(sum[:]), name)
	}
}
