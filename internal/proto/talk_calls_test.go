//go:build cgo

package proto_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() {
	elsewhere = append(elsewhere, party[map[string]bool]{"fake module", fakeModule})
}

// fakeModule has the fake of the kernel module replay the conversations, by calls of the back end
// over it, in the test of their own package. It returns the names of those that passed.
func fakeModule(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "test", "-json", "-run", "^TestTalk$", "../kdev").CombinedOutput()
	passed := map[string]bool{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Action == "pass" {
			passed[strings.TrimPrefix(event.Test, "TestTalk/")] = true
		}
	}
	require.NoError(t, err, "%s", out)
	return passed
}
