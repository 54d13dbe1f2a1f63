package debugapi

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/mirror"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMirrorIsTheHeader: structures, constants and ioctl numbers, both ways.
func TestMirrorIsTheHeader(t *testing.T) {
	names := &mirror.Names{Prefix: "nfcomms_", Initialisms: []string{"bar", "ioc", "ms"}}
	names.Constant = func(_, name string) string { return names.Camel(strings.TrimPrefix(name, "NFCOMMS_")) }
	c, err := mirror.ReadHeader(t.TempDir(), "../../../kmod/uapi/nfcomms_debug.h", regexp.MustCompile(`^NFCOMMS_`))
	require.NoError(t, err)
	g, err := mirror.ReadPackage(".")
	require.NoError(t, err)
	require.Contains(t, c.Structs, "nfcomms_access")
	require.Contains(t, c.Enums, "NFCOMMS_IOC_INTERRUPT")
	require.Empty(t, names.CompareStructs(c.Structs, g.Structs))
	require.Empty(t, names.CompareConstants(c.Enums, g.Constants))
}
