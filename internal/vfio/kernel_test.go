//go:build linux

package vfio

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestTakeSaysWhatToDo: what keeps a system from giving a function is in the error, with the remedy.
func TestTakeSaysWhatToDo(t *testing.T) {
	h := host{sys: t.TempDir(), dev: t.TempDir()}
	const path = "0000:01:00.0"
	folder := filepath.Join(h.sys, path)
	refused := func(kind error, text string) {
		t.Helper()
		_, err := h.take(path, nil)
		require.ErrorIs(t, err, kind)
		require.ErrorContains(t, err, text)
	}
	refused(os.ErrNotExist, "no PCI function "+path)
	require.NoError(t, os.Mkdir(folder, 0o700))
	refused(bridge.ErrNotSupported, "has no driver: bind it to vfio-pci")
	driver := filepath.Join(folder, "driver")
	require.NoError(t, os.Symlink("../../drivers/nfcomms", driver))
	refused(bridge.ErrNotSupported, "has the driver nfcomms")
	require.NoError(t, os.Remove(driver))
	require.NoError(t, os.Symlink("../../drivers/vfio-pci", driver))
	refused(bridge.ErrNotSupported, "behind no IOMMU")
	require.NoError(t, os.Symlink("../../../kernel/iommu_groups/7", filepath.Join(folder, "iommu_group")))
	refused(os.ErrNotExist, "VFIO: ")
	require.NoError(t, os.WriteFile(filepath.Join(h.dev, "vfio"), nil, 0o600))
	refused(bridge.ErrABI, "VFIO of version") // a file knows no requests
}

// TestRanges: the chain of an IOMMU's capabilities is read as far as it reaches.
func TestRanges(t *testing.T) {
	capability := func(id uint16, next, count uint32, ranges ...uint64) []byte {
		b := order.AppendUint16(order.AppendUint16(nil, id), 1)
		b = append(b, words(next, count, 0)...)
		for _, r := range ranges {
			b = order.AppendUint64(b, r)
		}
		return b
	}
	head := func(flags, first uint32) []byte { return words(4096, flags, 0x1000, 0, first, 0) }
	two := append(append(head(2, 24), capability(3, 40, 0)...), capability(1, 0, 2, 0, 0xfedfffff, 0xfef00000, 1<<39-1)...)
	require.Equal(t, [][2]uint64{{0, 0xfedfffff}, {0xfef00000, 1<<39 - 1}}, ranges(two))
	require.Len(t, ranges(two[:len(two)-8]), 1, "one is cut")
	require.Empty(t, ranges(head(0, 24)))
	require.Empty(t, ranges(append(head(2, 24), capability(3, 24, 0)...)), "a chain that is a ring")
	require.Empty(t, ranges(head(2, 1<<31)))
}

func TestPlaces(t *testing.T) {
	for text, want := range map[string]string{
		"0000:01:00.0": "0000:01:00.0", "3B:1f.7": "0000:3b:1f.7", "10000:e1:00.0": "10000:e1:00.0",
	} {
		got, err := parsePlace(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "0", "01:00", "01:20.0", "01:00.8", "0000:01:00.0/x", "../01:00.0", "0000:01:00.0\n"} {
		_, err := parsePlace(text)
		require.ErrorIs(t, err, bridge.ErrInvalid, text)
	}
}
