package vm

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// image makes a bzImage around a compressed kernel.
func image(payload []byte) []byte {
	const sectors, offset = 3, 0x40
	b := make([]byte, (sectors+1)*bootSector+offset)
	b[bootSectors] = sectors
	copy(b[bootMagic:], "HdrS")
	binary.LittleEndian.PutUint16(b[bootVersion:], 0x20f)
	binary.LittleEndian.PutUint32(b[bootPayload:], offset)
	binary.LittleEndian.PutUint32(b[bootLength:], uint32(len(payload)))
	return append(append(b, payload...), "what follows"...)
}

var elf = append([]byte("\x7fELF"), bytes.Repeat([]byte("kernel"), 1000)...)

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

// packed compresses as the kernel's build does: with the size behind it.
func packed(t *testing.T, data []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	require.NoError(t, err, "install %s", name)
	return binary.LittleEndian.AppendUint32(out, uint32(len(data)))
}

func TestVmlinux(t *testing.T) {
	for name, payload := range map[string][]byte{
		"gzip": gzipped(t, elf),
		"xz":   packed(t, elf, "xz", "-c", "--check=crc32"),
		"zstd": packed(t, elf, "zstd", "-cq"),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Vmlinux(image(payload))
			require.NoError(t, err)
			require.Equal(t, elf, got)
		})
	}
}

func TestVmlinuxRejects(t *testing.T) {
	whole := image(gzipped(t, elf))
	change := func(f func(b []byte)) []byte {
		b := bytes.Clone(whole)
		f(b)
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":      nil,
		"short":        whole[:bootEnd-1],
		"no magic":     change(func(b []byte) { b[bootMagic] = 'h' }),
		"old protocol": change(func(b []byte) { b[bootVersion] = 7 }),
		"far payload":  change(func(b []byte) { b[bootPayload+3] = 0xff }),
		"long payload": change(func(b []byte) { b[bootLength+3] = 0xff }),
		"no length":    change(func(b []byte) { binary.LittleEndian.PutUint32(b[bootLength:], 0) }),
		"unknown":      image([]byte("LZIPxxxxxxxx")),
		"broken gzip":  image(gzipped(t, elf)[:40]),
		"broken xz":    image([]byte("\xfd7zXZ\x00 and no more")),
		"broken zstd":  image([]byte("\x28\xb5\x2f\xfd and no more")),
		"no ELF":       image(gzipped(t, []byte("text"))),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Vmlinux(b)
			require.Error(t, err)
		})
	}
}

func TestExtractVmlinux(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "vmlinuz"), filepath.Join(t.TempDir(), "vmlinux")
	require.ErrorContains(t, ExtractVmlinux(from, to), "read kernel")
	require.NoError(t, os.WriteFile(from, []byte("text"), 0o600))
	require.ErrorIs(t, ExtractVmlinux(from, to), errNoKernel)
	require.NoFileExists(t, to)
	require.NoError(t, os.WriteFile(from, image(gzipped(t, elf)), 0o600))
	require.NoError(t, ExtractVmlinux(from, to))
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, elf, got)
	require.NoError(t, os.Remove(from))
	require.NoError(t, ExtractVmlinux(from, to), "what is there is not made again")
	left, err := os.ReadDir(filepath.Dir(to))
	require.NoError(t, err)
	require.Len(t, left, 1)
}
