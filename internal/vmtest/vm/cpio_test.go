package vm

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// member is a file read back from an archive.
type member struct {
	name         string
	mode         uint64
	major, minor uint64
	data         []byte
}

// readArchive parses a newc archive, by the field widths of its description.
func readArchive(t *testing.T, b []byte) []member {
	t.Helper()
	var all []member
	for at := 0; ; {
		require.Zero(t, at%4, "headers are aligned")
		require.Equal(t, "070701", string(b[at:at+6]))
		field := func(i int) uint64 {
			v, err := strconv.ParseUint(string(b[at+6+8*i:at+14+8*i]), 16, 32)
			require.NoError(t, err)
			return v
		}
		size, nameSize := int(field(6)), int(field(11))
		m := member{mode: field(1), major: field(9), minor: field(10)}
		name := b[at+110 : at+110+nameSize]
		require.Zero(t, name[nameSize-1])
		m.name = string(name[:nameSize-1])
		data := (at + 110 + nameSize + 3) &^ 3
		m.data = b[data : data+size]
		if m.name == "TRAILER!!!" {
			return all
		}
		all = append(all, m)
		at = (data + size + 3) &^ 3
	}
}

func sampleArchive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	a := NewArchive(&b)
	a.Char("/dev/console", 5, 1)
	a.File("/init", 0o755, []byte("program"))
	a.File("etc/deep/er/file", 0o640, nil)
	a.File("/etc/deep/other", 0o600, bytes.Repeat([]byte{7}, 4097))
	a.Link("/etc/mtab", "/proc/self/mounts")
	a.Folder("/empty/")
	require.NoError(t, a.Close())
	return b.Bytes()
}

func TestArchive(t *testing.T) {
	want := []member{
		{name: "dev", mode: 0o040755},
		{name: "dev/console", mode: 0o020600, major: 5, minor: 1},
		{name: "init", mode: 0o100755, data: []byte("program")},
		{name: "etc", mode: 0o040755},
		{name: "etc/deep", mode: 0o040755},
		{name: "etc/deep/er", mode: 0o040755},
		{name: "etc/deep/er/file", mode: 0o100640},
		{name: "etc/deep/other", mode: 0o100600, data: bytes.Repeat([]byte{7}, 4097)},
		{name: "etc/mtab", mode: 0o120777, data: []byte("/proc/self/mounts")},
		{name: "empty", mode: 0o040755},
	}
	got := readArchive(t, sampleArchive(t))
	require.Len(t, got, len(want))
	for i, w := range want {
		if w.data == nil {
			w.data = []byte{}
		}
		require.Equal(t, w, got[i])
	}
}

// TestArchiveByCpio has the real thing unpack an archive, where there is one.
func TestArchiveByCpio(t *testing.T) {
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		return // TestArchive holds the format to its description
	}
	dir := t.TempDir()
	cmd := exec.Command(cpio, "-id", "--quiet", "--no-preserve-owner", "init", "etc/*", "empty")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(sampleArchive(t))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(filepath.Join(dir, "etc/deep/other"))
	require.NoError(t, err)
	require.Len(t, data, 4097)
	target, err := os.Readlink(filepath.Join(dir, "etc/mtab"))
	require.NoError(t, err)
	require.Equal(t, "/proc/self/mounts", target)
}

type brokenWriter struct{ after int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.after -= len(b); w.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

func TestArchiveKeepsTheFirstError(t *testing.T) {
	size := len(sampleArchive(t))
	for after := 0; after < size; after += 97 {
		a := NewArchive(&brokenWriter{after})
		a.Char("/dev/console", 5, 1)
		a.File("/init", 0o755, make([]byte, size))
		require.ErrorContains(t, a.Close(), "write initramfs: disk full")
	}
}
