package uapi

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/mirror"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// headerPath is the C header this package mirrors.
const headerPath = "../../../kmod/uapi/nfcomms.h"

// names: struct nfcomms_a_b is AB, NFCOMMS_A_B is AB, and so is a macro.
var names = &mirror.Names{
	Prefix:      "nfcomms_",
	Initialisms: []string{"abi", "uapi", "ioc", "h2d", "d2h", "ns", "us", "ms", "emem", "ok", "dma", "fd", "id"},
}

func init() {
	names.Constant = func(_, name string) string { return names.Camel(strings.TrimPrefix(name, "NFCOMMS_")) }
}

func readBoth(t *testing.T) (mirror.Header, mirror.Package) {
	t.Helper()
	c, err := mirror.ReadHeader(t.TempDir(), headerPath, regexp.MustCompile(`^NFCOMMS_`))
	require.NoError(t, err)
	g, err := mirror.ReadPackage(".")
	require.NoError(t, err)
	return c, g
}

func TestMirrorHasTheLayoutOfTheHeader(t *testing.T) {
	c, g := readBoth(t)
	require.Contains(t, c.Structs, "nfcomms_completion")
	assert.Empty(t, names.CompareStructs(c.Structs, g.Structs))
}

// Constants of enums, macros, and the ioctl numbers as the macros compute them.
func TestMirrorHasTheConstantsOfTheHeader(t *testing.T) {
	c, g := readBoth(t)
	require.Contains(t, c.Enums, "NFCOMMS_OP_SEND")
	require.Contains(t, c.Enums, "NFCOMMS_IOC_SUBMIT")
	assert.Empty(t, names.CompareConstants(c.Enums, g.Constants))
}
