package abi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readIDs reads the golden ids.
func readIDs(t *testing.T) map[string]ID {
	t.Helper()
	data, err := os.ReadFile("testdata/target.ids")
	require.NoError(t, err)
	ids := map[string]ID{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var text string
		var id ID
		_, err := fmt.Sscanf(line, "%s %v", &text, &id)
		require.NoError(t, err, line)
		ids[text] = id
	}
	require.GreaterOrEqual(t, len(ids), 7)
	return ids
}

func TestGoldenIDs(t *testing.T) {
	for text, id := range readIDs(t) {
		require.Equal(t, text, id.String())
		require.True(t, id.Valid())
		if n, there := id.Node(); there {
			require.Equal(t, id, MakeID(n, id.Target()))
			require.Equal(t, text, fmt.Sprintf("%v/%d", n, id.Target()))
		} else {
			require.Equal(t, id, LocalID(id.Target()))
		}
	}
}

// TestBitsThatAreZero: each bit of an id is a field's, or must be zero.
func TestBitsThatAreZero(t *testing.T) {
	for bit := range 64 {
		local, node := ID(1)<<bit, ID(1)<<63|1<<bit
		require.Equal(t, bit < 24 || bit == 63, local.Valid(), bit)
		require.Equal(t, bit < 24 || bit >= 32 && bit < 56 || bit == 63, node.Valid(), bit)
	}
}
