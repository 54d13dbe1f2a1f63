package program

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files makes the sources of a program.
func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1]), Mode: 0o600}
	}
	return m
}

// lines gathers a device's log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

const formats = `#include <stdint.h>
#include "nfc_log.h"
#include "deep/words.h"

static void formats_main(struct nfc_process *self)
{
	char long_text[400];

	nfc_logf(self, "a %d %i %u %x %c %s %% end", -1, INT32_MIN, UINT32_MAX, 0xbeefu, 'q', word());
	nfc_logf(self, "b %lld %llu %llx %zu %ld %lu", (long long)INT64_MIN, ~0ull, 1ull << 63, sizeof(long_text), -5l, 6ul);
	nfc_logf(self, "c [%5d] [%05d] [%4x] [%04x] [%2u]", -42, -42, 10, 10, 12345);
	nfc_logf(self, "d %p", (void *)0x1f);
	__builtin_memset(long_text, 'z', sizeof(long_text));
	long_text[sizeof(long_text) - 1] = 0;
	nfc_logf(self, "e %s", long_text);
#pragma GCC diagnostic ignored "-Wformat"
	nfc_logf(self, "f %y %5");
	channel_write(nfc_channel_of(self, 0), NULL, 0);
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "formats", formats_main });
`

// TestBuild: several files in folders become one program, in debug or not, and
// nfc_logf writes what printf would.
func TestBuild(t *testing.T) {
	source := files("formats.c", formats, "deep/words.h", "const char *word(void);\n",
		"deep/words.c", "#include \"words.h\"\nconst char *word(void) { return \"text\"; }\n")
	for _, debug := range []bool{false, true} {
		image, err := Build(t.Context(), source, Options{Debug: debug})
		require.NoError(t, err)
		var log lines
		dev, err := nfcomms.Open(t.Context(), "sim:?beat=2s", nfcomms.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		name, err := dev.Load(t.Context(), image)
		require.NoError(t, err)
		p, err := dev.Run(t.Context(), nfcomms.Program{Name: name})
		require.NoError(t, err)
		_, err = p.Channels[0].Receive(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, dev.Close())
		for _, want := range []string{
			"a -1 -2147483648 4294967295 beef q text % end",
			"b -9223372036854775808 18446744073709551615 8000000000000000 400 -5 6",
			"c [  -42] [-0042] [   a] [000a] [12345]", "d 0x1f",
			"e " + strings.Repeat("z", 253), "f %y %5",
		} {
			require.Contains(t, log.text.String(), want)
		}
		require.NotContains(t, log.text.String(), strings.Repeat("z", 254))
	}
}

// TestImagesAreReproducible: an image does not depend on the folder in which it was built, so that one which a
// build machine made can be compared with its sources.
func TestImagesAreReproducible(t *testing.T) {
	source := os.DirFS("../../examples/program/device")
	for _, o := range []Options{{}, {Debug: true}} {
		one, err := Build(t.Context(), source, o)
		require.NoError(t, err)
		two, err := Build(t.Context(), source, o)
		require.NoError(t, err)
		require.True(t, bytes.Equal(one, two))
	}
}

func TestErrors(t *testing.T) {
	_, err := Build(t.Context(), files("wrong.c", "#include \"nfc_fw.h\"\nint here\n"), Options{})
	var wrong *Error
	require.ErrorAs(t, err, &wrong)
	require.ErrorContains(t, err, "wrong.c:2")
	require.NotContains(t, err.Error(), "\n")
	_, err = Build(t.Context(), files("README.md", "none"), Options{})
	require.ErrorIs(t, err, ErrSource)
	_, err = Build(t.Context(), os.DirFS("/none/there"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Build(t.Context(), files("a.c", ""), Options{Compiler: "no-such-compiler"})
	require.ErrorIs(t, err, ErrCompiler)
	_, err = Build(t.Context(), files("a.c", ""), Options{Flags: []string{"-fno-such-flag"}})
	require.ErrorContains(t, err, "no-such-flag")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Build(ctx, files("a.c", ""), Options{})
	require.ErrorIs(t, err, context.Canceled)
}

const calls = `#include <stdlib.h>
#include "nfc_fw.h"

void nowhere(struct nfc_process *self);

static void (*volatile end)(int);

static void x_main(struct nfc_process *self)
{
	CALL
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "x", x_main });
`

// TestCallsThatAreNotThere: a call that no device offers is an error of the build, which has
// the name, the file and the line.
func TestCallsThatAreNotThere(t *testing.T) {
	for call, says := range map[string]string{
		"chanel_read(self);":       "chanel_read",
		"nowhere(self);":           "undefined reference to `nowhere'",
		"exit(!self);":             "undefined reference to `exit'",
		"end = _Exit; end(!self);": "undefined reference to `_Exit'",
		"atexit(abort);":           "undefined reference to `atexit'",
	} {
		for _, debug := range []bool{false, true} {
			_, err := Build(t.Context(), files("x.c", strings.Replace(calls, "CALL", call, 1)), Options{Debug: debug})
			var wrong *Error
			require.ErrorAs(t, err, &wrong, call)
			require.ErrorContains(t, err, says, call)
			require.Regexp(t, `^build program: (\./)?x\.c:10:`, err.Error(), call)
		}
	}
	text, err := os.ReadFile("../../firmware/port/vet.c")
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(text), "vet_refused[] = {")
	list, _, _ = strings.Cut(list, "}")
	require.Equal(t, strings.Fields(strings.NewReplacer(`"`, "", ",", " ").Replace(list)), refused)
	for _, attribute := range []string{"constructor", "destructor"} {
		_, err := Build(t.Context(), files("x.c", strings.Replace(calls, "CALL", "(void)self;", 1)+
			"__attribute__(("+attribute+")) static void around(void) { abort(); }\n"), Options{})
		require.ErrorIs(t, err, ErrConstructor, attribute)
	}
}

// TestBuildFollowsLinks: a header may be a relative symbolic link, to a place among the sources or
// beside them, and a folder may be one.
func TestBuildFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("shared/a.h", "#define A 1\n")
	write("shared/deep/b.h", "#include \"../a.h\"\n#define B A\n")
	write("device/own.h", "#define C B\n")
	write("device/program.c", "#include \"a.h\"\n#include \"deep/b.h\"\n#include \"same.h\"\n#include \"up/shared/a.h\"\nint d = C;\n")
	for link, to := range map[string]string{"a.h": "../shared/a.h", "deep": "../shared/deep", "same.h": "own.h", "up": "..", "gone.h": "../gone.h"} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, "device", link)))
	}
	_, err := Build(t.Context(), os.DirFS(filepath.Join(dir, "device")), Options{})
	require.NoError(t, err)

	write("device/program.c", "#include \"gone.h\"\n")
	_, err = Build(t.Context(), os.DirFS(filepath.Join(dir, "device")), Options{})
	require.ErrorContains(t, err, "program.c:1:10: fatal error: gone.h: No such file or directory")
}
