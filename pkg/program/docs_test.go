package program

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// load builds a program of one file, loads it and returns its name.
func load(t *testing.T, dev *nfcomms.Device, text string, o Options) (string, error) {
	t.Helper()
	image, err := Build(t.Context(), files("program.c", text), o)
	require.NoError(t, err)
	return dev.Load(t.Context(), image)
}

func open(t *testing.T) *nfcomms.Device {
	t.Helper()
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// TestDocs: the program of docs/programs.md does what it says, and the page lists
// every call that there is.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/programs.md")
	require.NoError(t, err)
	listing := regexp.MustCompile("(?s)```c\n(#include \"nfc_fw.h\".*?)```").FindSubmatch(page)
	require.NotNil(t, listing)
	dev := open(t)
	name, err := load(t, dev, string(listing[1]), Options{})
	require.NoError(t, err)
	p, err := dev.Run(t.Context(), nfcomms.Program{Name: name})
	require.NoError(t, err)
	require.NoError(t, p.Channels[0].Send(t.Context(), []byte("hello")))
	buf := make([]byte, nfcomms.MessageSize)
	n, err := p.Channels[0].Receive(t.Context(), buf)
	require.NoError(t, err)
	require.Equal(t, "hello", string(buf[:n]))

	header, err := os.ReadFile("../../firmware/nfc_fw.h")
	require.NoError(t, err)
	var want, got []string
	for _, m := range regexp.MustCompile(`(?m)^#define (\w+) nfc_api->`).FindAllSubmatch(header, -1) {
		want = append(want, string(m[1]))
	}
	_, table, _ := strings.Cut(string(page), "| call | does |")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\|").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}

const shell = `#include "nfc_fw.h"
static void x_main(struct nfc_process *self)
{
	int big = __INT_MAX__;
	uint64_t c = 0;

	channel_read(nfc_channel_of(self, 0), &c, 8);
	big += (int)c;
	c = (uint64_t)big;
}
`

// TestFailures: a program that cannot run, or that ended, is an error with a type.
func TestFailures(t *testing.T) {
	dev := open(t)
	for table, want := range map[string]error{
		`{ NFC_PROGRAM_ABI + 65536, 0, "x", x_main }`:                         nfcomms.ErrABI,
		`{ NFC_PROGRAM_ABI, (16 << 20) + 1, "x", x_main }`:                    nfcomms.ErrTooLarge,
		`{ NFC_PROGRAM_ABI, 0, "sink", x_main }`:                              nfcomms.ErrBusy,
		`{ NFC_PROGRAM_ABI, 0, "a name of 24 characters.", x_main }`:          nfcomms.ErrInvalid,
		`{ NFC_PROGRAM_ABI, 0, "x", 0 }, { NFC_PROGRAM_ABI, 0, "y", x_main }`: nfcomms.ErrInvalid,
	} {
		_, err := load(t, dev, shell+"NFC_PROGRAMS("+table+");\n", Options{})
		require.ErrorIs(t, err, want, table)
	}
	name, err := load(t, dev, shell+"NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, \"x\", x_main });\n", Options{})
	require.NoError(t, err)
	p, err := dev.Run(t.Context(), nfcomms.Program{Name: name})
	require.NoError(t, err)
	require.NoError(t, p.Channels[0].Send(t.Context(), make([]byte, 8)))
	_, err = p.Channels[0].Receive(t.Context(), make([]byte, 8))
	require.ErrorIs(t, err, nfcomms.ErrClosed)
}

const wild = `#include "nfc_fw.h"
static void x_main(struct nfc_process *self)
{
	uint64_t at;

	channel_read(nfc_channel_of(self, 0), &at, 8);
	*(volatile uint8_t *)(uintptr_t)at = 1;
}
NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "x", x_main });
`

// TestCrashNamesTheLine: the error of a program that touches what is no memory has the
// line, and addr2line makes the same of what the log says.
func TestCrashNamesTheLine(t *testing.T) {
	var log bytes.Buffer
	dev, err := nfcomms.Open(t.Context(), "sim:", nfcomms.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	name, err := load(t, dev, wild, Options{})
	require.NoError(t, err)
	p, err := dev.Run(t.Context(), nfcomms.Program{Name: name})
	require.NoError(t, err)
	require.NoError(t, p.Channels[0].Send(t.Context(), []byte{16, 0, 0, 0, 0, 0, 0, 0}))
	_, err = p.Channels[0].Receive(t.Context(), make([]byte, 8))
	require.ErrorContains(t, err, `program "x"`)
	require.ErrorContains(t, err, "touched memory that cannot be reached, at 0x10, at program.c:7")
	var crash *nfcomms.CrashError
	require.ErrorAs(t, err, &crash)
	require.NoError(t, dev.Close())

	m := regexp.MustCompile(`touched memory .*, at 0x10, in its image at (0x[0-9a-f]+)`).FindSubmatch(log.Bytes())
	require.NotNil(t, m, "%s", log.String())
	image, err := Build(t.Context(), files("program.c", wild), Options{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.so")
	require.NoError(t, os.WriteFile(path, image, 0o600))
	where, err := exec.Command("addr2line", "-e", path, string(m[1])).CombinedOutput()
	require.NoError(t, err, "%s", where)
	require.Contains(t, string(where), "program.c:7")
}

// TestCrashLines: also in code that a compiler inlined, or took for unlikely, a crash is
// named by its line.
func TestCrashLines(t *testing.T) {
	text, err := os.ReadFile("../../internal/sim/testdata/crash.c")
	require.NoError(t, err)
	dev := open(t)
	name, err := load(t, dev, string(text), Options{})
	require.NoError(t, err)
	for way, comment := range []string{"WILD", "DIVIDE", "STOP", "TRAP", "", "", "CHANNEL", "BUFFER", "LOG", "LIBRARY"} {
		if comment == "" {
			continue
		}
		p, err := dev.Run(t.Context(), nfcomms.Program{Name: name})
		require.NoError(t, err)
		require.NoError(t, p.Channels[0].Send(t.Context(), []byte{byte(way), 0, 0, 0, 0, 0, 0, 0}))
		_, err = p.Channels[0].Receive(t.Context(), make([]byte, 8))
		before, _, _ := strings.Cut(string(text), "/* "+comment+" */")
		require.ErrorContains(t, err, fmt.Sprintf(", at program.c:%d", strings.Count(before, "\n")+1), comment)
	}
}

const smash = `#include "nfc_fw.h"
static void fill(volatile char *to, int n)
{
	while (n-- > 0)
		to[n] = 1;
}
static void at_depth(int n)
{
	char array[16];

	fill(array, n);
}
static void x_main(struct nfc_process *self)
{
	char n = 0;

	channel_read(nfc_channel_of(self, 0), &n, 1);
	at_depth(n);
}
NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "x", x_main });
`

// TestSmashedStack: a program that was built for debugging ends where it wrote past an array.
func TestSmashedStack(t *testing.T) {
	dev := open(t)
	name, err := load(t, dev, smash, Options{Debug: true})
	require.NoError(t, err)
	p, err := dev.Run(t.Context(), nfcomms.Program{Name: name})
	require.NoError(t, err)
	require.NoError(t, p.Channels[0].Send(t.Context(), []byte{32}))
	_, err = p.Channels[0].Receive(t.Context(), make([]byte, 8))
	require.ErrorContains(t, err, "aborted, at program.c:12")
}

// TestSanitizer: a program that was built for debugging names the line that overflows.
func TestSanitizer(t *testing.T) {
	child := exec.Command(os.Args[0], "-test.run", "^TestSanitizedChild$")
	child.Env = append(os.Environ(), "NFC_SANITIZED=1")
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "program.c:8:6: runtime error: signed integer overflow")
}

// TestSanitizedChild is the process of TestSanitizer whose standard error is read.
func TestSanitizedChild(t *testing.T) {
	if os.Getenv("NFC_SANITIZED") == "" {
		return
	}
	dev := open(t)
	name, err := load(t, dev, shell+"NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, \"x\", x_main });\n", Options{Debug: true})
	require.NoError(t, err)
	p, err := dev.Run(t.Context(), nfcomms.Program{Name: name})
	require.NoError(t, err)
	require.NoError(t, p.Channels[0].Send(t.Context(), []byte{1, 0, 0, 0, 0, 0, 0, 0}))
	_, err = p.Channels[0].Receive(t.Context(), make([]byte, 8))
	require.ErrorIs(t, err, nfcomms.ErrClosed)
}
