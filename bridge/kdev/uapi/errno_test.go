package uapi

import (
	"os"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/mirror"
)

// errnoNames are the names that C gives to errnos a status may have.
var errnoNames = map[string]syscall.Errno{
	"EPIPE": syscall.EPIPE, "ETIMEDOUT": syscall.ETIMEDOUT, "EMSGSIZE": syscall.EMSGSIZE,
	"EPROTOTYPE": syscall.EPROTOTYPE, "E2BIG": syscall.E2BIG, "ERANGE": syscall.ERANGE,
	"EPROTO": syscall.EPROTO, "EIO": syscall.EIO, "ECONNABORTED": syscall.ECONNABORTED,
	"ECANCELED": syscall.ECANCELED, "ENXIO": syscall.ENXIO, "EBUSY": syscall.EBUSY,
	"ENOENT": syscall.ENOENT, "ENOEXEC": syscall.ENOEXEC, "ENOMEM": syscall.ENOMEM,
	"EINVAL": syscall.EINVAL, "EOPNOTSUPP": syscall.EOPNOTSUPP, "EINTR": syscall.EINTR,
	"ENODEV": syscall.ENODEV, "EHOSTDOWN": syscall.EHOSTDOWN,
}

// TestErrnoTables holds the tables of statuses that the module and the C library
// have to the one in package bridge.
func TestErrnoTables(t *testing.T) {
	header, err := mirror.ReadHeader(t.TempDir(), "../../../firmware/nfc_abi.h", nil)
	require.NoError(t, err)
	row := regexp.MustCompile(`\[(NFC_E[A-Z]+)\]\s*=\s*(E[A-Z0-9]+)`)
	for _, path := range []string{"../../../kmod/nfc_hw.c", "../../../kmod/lib/device.c"} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		rows := row.FindAllStringSubmatch(string(text), -1)
		require.Len(t, rows, int(abi.StatusCount)-1, "%s: statuses with an errno", path)
		for _, r := range rows {
			status, known := header.Enums[r[1]]
			require.True(t, known, "%s: %s", path, r[1])
			code, _ := bridge.CodeOf(abi.Status(status.Value))
			require.Equal(t, code.Errno, errnoNames[r[2]], "%s: %s", path, r[0])
		}
	}
}
