package tutorial

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Headers that lines of C without a whole program need, and the names that they use.
const (
	device = "#include <nfc_fw.h>\nstruct said { uint64_t log; };\n"
	driver = "#include <stdint.h>\n#include <string.h>\n#include <fcntl.h>\n#include <poll.h>\n#include <unistd.h>\n" +
		"#include <sys/eventfd.h>\n#include <sys/ioctl.h>\n#include <sys/mman.h>\n#include <nfcomms.h>\n"
)

// partsOfC are those of each page, in order: what stands before a function of these lines,
// and at its begin.
var partsOfC = map[string][][2]string{
	"fabric.md": {{device, "struct nfc_process *self = 0; struct nfc_channel *ch = 0; uint64_t size = 4096;"}},
	"groups.md": {{device + "#include <nfc_group.h>\nstatic void use(const void *data, uint32_t from, uint32_t n) { (void)data; (void)from; (void)n; }\n",
		"struct nfc_process *self = 0; uint64_t state = 0; uint32_t from = 0, n = 0; const void *data = 0;"}},
	"programs.md": {
		{device, "struct nfc_process *self = 0; uint64_t size = 4096, address = 0;"},
		{device, "struct nfc_process *self = 0; uint64_t since = 0; int n = 0;"},
	},
	"ring.md": {{device + "#include <nfc_ring.h>\nstatic void use(const void *data, uint32_t n) { (void)data; (void)n; }\n",
		"struct nfc_process *self = 0; const void *packet = 0; uint32_t n = 0;"}},
	"kernel-module.md": {
		{driver, "uint8_t bytes[64] = { 0 }; uint64_t size = sizeof(bytes);"},
		{driver, "int fd = 0;"}, {driver, "int fd = 0;"},
		{driver, "int fd = 0, buffer = 0; uint32_t channel = 0; uint8_t bytes[64]; uint64_t size = sizeof(bytes);"},
	},
}

var (
	cListing = regexp.MustCompile("(?s)```c\n(.*?)```\n")
	include  = regexp.MustCompile(`(?m)^#include .*\n`)
)

// TestPartsOfC: each listing of C in a page that is no whole program compiles in a function
// of a device program, or of a program that uses the driver. Whole ones run in TestPrograms
// and in a test of package program.
func TestPartsOfC(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/*.md")
	require.NoError(t, err)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		var parts []string
		for _, m := range cListing.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "NFC_PROGRAMS(") {
				parts = append(parts, m[1])
			}
		}
		name := filepath.Base(page)
		require.Len(t, partsOfC[name], len(parts), "listings of C in %s that are no whole program", name)
		for i, part := range parts {
			around := partsOfC[name][i]
			source := filepath.Join(t.TempDir(), "part.c")
			all := around[0] + strings.Join(include.FindAllString(part, -1), "") + "void part(void);\nvoid part(void)\n{\n" +
				around[1] + "\n" + include.ReplaceAllString(part, "") + "}\n"
			require.NoError(t, os.WriteFile(source, []byte(all), 0o600))
			said, err := exec.Command("gcc", "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
				"-Wno-unused", "-I"+root+"/firmware", "-I"+root+"/kmod/uapi", source).CombinedOutput()
			require.NoError(t, err, "%s %d: %s", name, i, said)
		}
	}
}
