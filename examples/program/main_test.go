package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build compiles a device program the way device/Makefile does.
func build(t *testing.T, source string) string {
	t.Helper()
	object := filepath.Join(t.TempDir(), "program.so")
	firmware, err := filepath.Abs("../../firmware")
	require.NoError(t, err)
	out, err := exec.Command("gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
		"-DNFC_PROGRAM_SHARED", "-I"+firmware, "-o", object, source).CombinedOutput()
	require.NoError(t, err, "gcc (install it with: apt-get install gcc): %s", out)
	return object
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// An outside program is built, loaded, started and used.
func TestProgram(t *testing.T) {
	empty := write(t, "empty", nil)
	large := write(t, "large", bytes.Repeat([]byte("NFComms"), 500_000))
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, build(t, "device/checksum.c"), []string{"main.go", empty, large}))
	require.Contains(t, out.String(), "00000000         0 "+empty)
	require.Contains(t, out.String(), "  3500000 "+large)
}

// The Makefile that a user copies works.
func TestMakefile(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		require.NoError(t, err, "install it with: apt-get install make")
	}
	dir := t.TempDir()
	for _, name := range []string{"checksum.c", "Makefile"} {
		text, err := os.ReadFile(filepath.Join("device", name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	out, err := exec.Command("make", "-C", dir, "NFCOMMS="+root).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, run(t.Context(), &bytes.Buffer{}, filepath.Join(dir, "checksum.so"), []string{"main.go"}))
}

func TestProgramOfAnotherABI(t *testing.T) {
	source := write(t, "other.c", []byte(`#include "nfc_fw.h"
static void other(struct nfc_process *self) { (void)self; }
NFC_PROGRAMS({ NFC_PROGRAM_ABI + (1 << 16), 0, "other", other });
`))
	err := run(t.Context(), &bytes.Buffer{}, build(t, source), []string{"main.go"})
	require.ErrorIs(t, err, nfcomms.ErrABI)
}

// A shared object that is no device program.
func TestObjectWithoutPrograms(t *testing.T) {
	source := write(t, "none.c", []byte("int answer(void);\nint answer(void) { return 42; }\n"))
	err := run(t.Context(), &bytes.Buffer{}, build(t, source), []string{"main.go"})
	require.ErrorIs(t, err, nfcomms.ErrInvalid)
}

// A table that names nothing.
func TestObjectWithAnEmptyTable(t *testing.T) {
	source := write(t, "empty.c", []byte(`#include "nfc_fw.h"
const struct nfc_api *nfc_api;
const struct nfc_program nfc_program_table[] = { { 0, 0, NULL, NULL } };
`))
	err := run(t.Context(), &bytes.Buffer{}, build(t, source), []string{"main.go"})
	require.ErrorIs(t, err, nfcomms.ErrInvalid)
}

func TestFileThatIsNoObject(t *testing.T) {
	for name, text := range map[string][]byte{
		"text":  []byte("int main(void) { return 0; }\n"),
		"empty": nil,
		"elf":   append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 4096)...),
	} {
		err := run(t.Context(), &bytes.Buffer{}, write(t, name, text), []string{"main.go"})
		require.ErrorIs(t, err, nfcomms.ErrInvalid, name)
	}
}

func TestFileThatIsNotThere(t *testing.T) {
	err := run(t.Context(), &bytes.Buffer{}, filepath.Join(t.TempDir(), "none.so"), []string{"main.go"})
	require.ErrorIs(t, err, os.ErrNotExist)
}
