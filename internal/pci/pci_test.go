package pci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/mirror"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const firmwareDir = "../../firmware"

// TestMirrorHasTheConstantsOfTheHeader compares every enumerator, both ways.
func TestMirrorHasTheConstantsOfTheHeader(t *testing.T) {
	dir := t.TempDir()
	abi, err := os.ReadFile(filepath.Join(firmwareDir, "nfc_abi.h"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "nfc_abi.h"), abi, 0o600))
	c, err := mirror.ReadHeader(dir, filepath.Join(firmwareDir, "nfc_pci.h"), nil)
	require.NoError(t, err)
	g, err := mirror.ReadPackage(".")
	require.NoError(t, err)
	names := &mirror.Names{Initialisms: []string{"id", "abi", "dma", "emem", "msix", "pba"}}
	names.Constant = func(_, name string) string {
		return names.Camel(strings.TrimPrefix(strings.TrimPrefix(name, "NFC_"), "PCI_"))
	}
	require.Contains(t, c.Enums, "NFC_REG_DOORBELL")
	assert.Empty(t, names.CompareConstants(c.Enums, g.Constants))
}
