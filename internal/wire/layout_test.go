package wire

import (
	"maps"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/mirror"
)

// names maps how names of the header become names of the mirror: struct
// nfc_a_b is AB, NFC_A_B is AB; exceptions are the table and constantName.
var names = &mirror.Names{
	Prefix:      "nfc_",
	Initialisms: []string{"abi", "h2d", "d2h", "pfn", "ns", "ms", "cls", "ctm", "imem", "emem", "ok"},
}

func init() { names.Constant = constantName }

// statusNames spells out what errno-like names cut short or run together.
var statusNames = map[string]string{
	"ETOOLARGE": "ErrTooLarge", "ENOTARGET": "ErrNoTarget", "ENOPROGRAM": "ErrNoProgram",
	"ENOMEM": "ErrNoMemory", "EINVAL": "ErrInvalid", "ENOTSUP": "ErrNotSupported",
	"EABI": "ErrABI", "EDMA": "ErrDMA", "OK": "OK", "STATUS_COUNT": "StatusCount",
}

// constantName maps a C enumerator to its name in the mirror.
func constantName(enum, name string) string {
	name = strings.TrimPrefix(name, "NFC_")
	switch enum {
	case "nfc_limits": // NFC_ABI_MAJOR is abi.Major
		name = strings.TrimPrefix(name, "ABI_")
	case "nfc_status": // NFC_ECLOSED is abi.ErrClosed
		if special, ok := statusNames[name]; ok {
			return special
		}
		return "Err" + names.Camel(name[1:])
	case "nfc_diagnostic_field": // abi.DiagCore is a shift: there is nothing else to it
		name = strings.TrimSuffix(name, "_SHIFT")
	case "nfc_diagnostic_level": // NFC_DIAG_SICK is abi.Sick
		name = strings.TrimPrefix(name, "DIAG_")
	}
	return names.Camel(name)
}

// requireTool fails with what to install if a program is missing.
func requireTool(t *testing.T, name, debian string) {
	t.Helper()
	_, err := exec.LookPath(name)
	require.NoError(t, err, "%s is missing; install it with: apt-get install %s", name, debian)
}

// headerPath is the C header this package mirrors.
const headerPath = "../../firmware/nfc_abi.h"

// both is read once: the type checker reads every package below from source.
var both struct {
	sync.Once
	c mirror.Header
	g mirror.Package
}

// readBoth returns what the C compiler says of the header, and the Go type checker of its mirrors.
func readBoth(t *testing.T) (mirror.Header, mirror.Package) {
	t.Helper()
	both.Do(func() {
		var err error
		both.c, err = mirror.ReadHeader(t.TempDir(), headerPath, nil)
		require.NoError(t, err)
		both.g, err = mirror.ReadPackage(".")
		require.NoError(t, err)
		contract, err := mirror.ReadPackage("../../bridge/abi")
		require.NoError(t, err)
		maps.Copy(both.g.Constants, contract.Constants)
	})
	return both.c, both.g
}

func TestMirrorHasTheLayoutOfTheHeader(t *testing.T) {
	c, g := readBoth(t)
	require.Contains(t, c.Structs, "nfc_slot")
	assert.Empty(t, names.CompareStructs(c.Structs, g.Structs))
}

func TestMirrorHasTheConstantsOfTheHeader(t *testing.T) {
	c, g := readBoth(t)
	require.Contains(t, c.Enums, "NFC_ABI_MAJOR")
	assert.Empty(t, names.CompareConstants(c.Enums, g.Constants))
}

// Shifts are private to each side; this ties what the mirror does to what the
// header says.
func TestShiftsAreTheHeaders(t *testing.T) {
	c, _ := readBoth(t)
	bit := func(name string) uint64 {
		e, ok := c.Enums[name]
		require.True(t, ok, "%s is not in the header", name)
		return 1 << e.Value
	}
	for _, row := range []struct {
		name string
		got  uint64
	}{
		{"NFC_HDR_TYPE_SHIFT", uint64(MakeHeader(1, 0, 0, 0, 0))},
		{"NFC_HDR_PHASE_SHIFT", uint64(Header(0).WithPhase(1))},
		{"NFC_HDR_LENGTH_SHIFT", uint64(MakeHeader(0, 1, 0, 0, 0))},
		{"NFC_HDR_EPOCH_SHIFT", uint64(MakeHeader(0, 0, 1, 0, 0))},
		{"NFC_HDR_SEQUENCE_SHIFT", uint64(MakeHeader(0, 0, 0, 1, 0))},
		{"NFC_HDR_CHANNEL_SHIFT", uint64(MakeHeader(0, 0, 0, 0, 1))},
		{"NFC_ENTRY_LENGTH_SHIFT", uint64(MakeEntry(0, 2))},
		{"NFC_ENTRY_OFFSET_SHIFT", uint64(MakeEntry(1, 1))},
		{"NFC_ENTRY_PFN_SHIFT", uint64(MakeEntry(abi.PageSize, 1))},
		{"NFC_RUN_PAGES_SHIFT", uint64(MakeRun(0, 2))},
		{"NFC_RUN_ADDRESS_SHIFT", uint64(MakeRun(1, 1))},
		{"NFC_TAIL_NUMBER_SHIFT", MakeTail(0, 1)},
		{"NFC_TAIL_OUTSTANDING_SHIFT", MakeTail(1, 0)},
		{"NFC_ID_TARGET_SHIFT", uint64(abi.LocalID(1))},
		{"NFC_ID_Z_SHIFT", uint64(abi.MakeID(abi.MakeNode(0, 0, 1), 0) &^ (1 << 63))},
		{"NFC_ID_Y_SHIFT", uint64(abi.MakeID(abi.MakeNode(0, 1, 0), 0) &^ (1 << 63))},
		{"NFC_ID_X_SHIFT", uint64(abi.MakeID(abi.MakeNode(1, 0, 0), 0) &^ (1 << 63))},
		{"NFC_ID_NODE_SHIFT", uint64(abi.MakeID(0, 0))},
	} {
		assert.Equal(t, bit(row.name), row.got, row.name)
	}
	for name := range c.Enums {
		if readings := strings.HasPrefix(name, "NFC_DIAG_") && strings.HasSuffix(name, "_SHIFT"); !readings {
			continue
		}
		d := abi.Diagnostic(bit(name))
		switch name {
		case "NFC_DIAG_VALID_SHIFT":
			assert.True(t, d.Valid())
			assert.Equal(t, abi.Normal, d.Worst(), "the valid bit is no reading")
		case "NFC_DIAG_SPARE_SHIFT":
			assert.Equal(t, abi.Normal, d.Worst(), "a spare bit is no reading")
		default:
			assert.Equal(t, abi.Sick, d.Worst(), name)
			assert.False(t, d.Valid(), name)
		}
	}
}
