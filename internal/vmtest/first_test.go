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

// TestFirstHeadersAreFrozen: the first header of each ioctl interface, and the program of the
// present one's, stay as they were. A change of that program breaks those that were built since.
func TestFirstHeadersAreFrozen(t *testing.T) {
	for name, want := range map[string]string{
		"first/nfcomms.h":      "dc571fdff793a34ecaa8b3e2c37ddc87869e1bf213c3ed3cbb12895bbcc8e40e",
		"first/first_test.c":   "36bb93e596227ff22ab90830d3b6ce1192d1ea310f0723ba83379c4c5313223c",
		"interface2/nfcomms.h": "05ef9d542033bfb6995d9a133017075fd6115cb5e9373f5060eb824edc1a9b2a",
	} {
		text, err := os.ReadFile(filepath.Join("c", name))
		require.NoError(t, err)
		sum := sha256.Sum256(text)
		require.Equal(t, want, hex.EncodeToString(sum[:]), name)
	}
}
