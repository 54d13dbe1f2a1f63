package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// programNew runs nfctl program new in the test's folder.
func programNew(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"program", "new"}, args...), streams{nil, &out, &errs}, func(string) string { return "" })
	return code, out.String(), errs.String()
}

// TestProgramNew makes a program, and does with it what its README says.
func TestProgramNew(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	code, out, errs := programNew(t, "word_count2", "-o", "json")
	require.Equal(t, exitOK, code, errs)
	var r programRecord
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, programRecord{"word_count2", "word_count2", []string{"Makefile", "README.md", "debug.gdb", "device/word_count2.c", "word_count2_test.go"}}, r)
	t.Chdir("word_count2")
	formatted, err := exec.Command("gofmt", "-l", ".").CombinedOutput()
	require.NoError(t, err)
	require.Empty(t, string(formatted))

	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	_, needs, _ := strings.Cut(string(mod), "\n")
	mod = fmt.Appendf(nil, "module word_count2\n%s\nrequire github.com/nfcomms/nfcomms v0.0.0\nreplace github.com/nfcomms/nfcomms => %s\n", needs, root)
	require.NoError(t, os.WriteFile("go.mod", mod, 0o600))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("go.sum", sum, 0o600))
	nfctl := filepath.Join(t.TempDir(), "nfctl")
	said, err := exec.Command("go", "build", "-C", filepath.Join(root, "cmd/nfctl"), "-o", nfctl).CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, arg := range []string{"test", "all", "debug", "clean"} {
		said, err := exec.Command("make", arg, "GDB=gdb -batch", "NFCTL="+nfctl).CombinedOutput()
		require.NoError(t, err, "make %s: %s", arg, said)
		if arg == "debug" {
			require.Regexp(t, `word_count2_main \(self=0x[0-9a-f]+\) at \./word_count2.c:(\d+)\n\d+\t[{\s]`, string(said))
		}
	}
	require.NoFileExists(t, "word_count2.so")
}

// TestProgramBuild builds a program as a machine without Go does, and a device takes the image.
func TestProgramBuild(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, errs := programNew(t, "some")
	require.Equal(t, exitOK, code, errs)
	nfctl := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = run(t.Context(), args, streams{nil, &out, &errs}, func(string) string { return "" })
		return code, out.String(), errs.String()
	}
	compiler, err := exec.LookPath("cc")
	require.NoError(t, err)
	t.Setenv("CC", compiler)
	t.Setenv("PATH", "/usr/bin:/bin") // no Go
	code, out, errs := nfctl("program", "build", "some/device", "-o", "json")
	require.Equal(t, exitOK, code, errs)
	info, err := os.Stat("device.so")
	require.NoError(t, err)
	require.JSONEq(t, fmt.Sprintf(`{"image":"device.so","bytes":%d}`, info.Size()), out)
	code, out, errs = nfctl("program", "build", "--debug", "some", "x.so")
	require.Equal(t, exitOK, code, errs)
	require.Regexp(t, `^x\.so: \d+ bytes\n$`, out)
	code, out, errs = nfctl("load", "--device", "sim:", "local", "device.so")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, out, "some")

	require.NoError(t, os.WriteFile("some/device/bad.c", []byte("int f(void) { return missing; }\n"), 0o600))
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"some", "device/bad.c:1:", exitUsage},
		{".git", "no folder .git", exitUsage},
		{"some/device some/there/x.so", "bad.c", exitUsage},
	} {
		code, _, errs = nfctl(append([]string{"program", "build"}, strings.Fields(c.args)...)...)
		require.Equal(t, c.code, code, errs)
		require.Contains(t, errs, c.says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	t.Setenv("CC", "")
	t.Setenv("PATH", t.TempDir())
	code, _, errs = nfctl("program", "build", "some")
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, "no C compiler: install one")
}

func TestProgramNewRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("there", 0o700))
	for name, says := range map[string]string{
		"there": "file exists", "": "cannot be the name", "a/b": "cannot be the name", "Big": "cannot be the name",
		"1st": "cannot be the name", "no-dash": "cannot be the name", strings.Repeat("x", 24): "cannot be the name",
	} {
		code, out, errs := programNew(t, name)
		require.Equal(t, exitUsage, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, left, 1)
	code, _, errs := programNew(t)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "arg")
}
