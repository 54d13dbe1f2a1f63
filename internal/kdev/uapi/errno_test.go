package uapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// printErrnos is what C makes of each status, and of the one behind the last.
const printErrnos = `
int main(void)
{
	for (unsigned int i = 0; i <= NFC_STATUS_COUNT; i++)
		printf("%d ", nfcm_status_errno(i));
}`

// TestErrnosAreThoseOfC holds the table that the module and the C library share
// to the one in package bridge.
func TestErrnosAreThoseOfC(t *testing.T) {
	source := "#include <errno.h>\n#include <stdio.h>\n"
	for _, header := range []string{"../../../firmware/nfc_abi.h", "../../../kmod/core/nfcm_errno.h"} {
		text, err := os.ReadFile(header)
		require.NoError(t, err)
		source += string(text)
	}
	program := filepath.Join(t.TempDir(), "errnos")
	gcc := exec.Command("gcc", "-xc", "-o", program, "-")
	gcc.Stdin = strings.NewReader(source + printErrnos)
	out, err := gcc.CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program).Output()
	require.NoError(t, err)

	var want []string
	for s := abi.OK; s < abi.StatusCount; s++ {
		code, _ := bridge.CodeOf(s)
		want = append(want, strconv.Itoa(int(code.Errno)))
	}
	want = append(want, strconv.Itoa(int(syscall.EPROTO)))
	assert.Equal(t, want, strings.Fields(string(out)))
}
