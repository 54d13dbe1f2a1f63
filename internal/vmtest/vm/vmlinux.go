package vm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// Places in a bzImage, from the kernel's Documentation/arch/x86/boot.rst.
const (
	bootSectors  = 0x1f1 // u8: sectors of the real-mode part, less one; 0 means 4
	bootMagic    = 0x202 // "HdrS"
	bootVersion  = 0x206 // u16
	bootPayload  = 0x248 // u32: offset of the payload in the protected-mode part
	bootLength   = 0x24c // u32: its length
	bootEnd      = 0x250
	bootSector   = 512
	payloadSince = 0x208 // the boot protocol that has a payload
)

var errNoKernel = errors.New("no compressed x86 kernel")

// Vmlinux extracts the kernel proper from a bzImage. A guest that starts it
// saves the time to decompress it, which emulation makes long.
func Vmlinux(image []byte) ([]byte, error) {
	packed, err := payload(image)
	if err != nil {
		return nil, err
	}
	kernel, err := unpack(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack kernel: %w", err)
	}
	if !bytes.HasPrefix(kernel, []byte("\x7fELF")) {
		return nil, fmt.Errorf("%w: the payload is no ELF file", errNoKernel)
	}
	return kernel, nil
}

// payload finds the compressed kernel by the image's boot header.
func payload(image []byte) ([]byte, error) {
	if len(image) < bootEnd || string(image[bootMagic:bootMagic+4]) != "HdrS" {
		return nil, fmt.Errorf("%w: no boot header", errNoKernel)
	}
	if v := binary.LittleEndian.Uint16(image[bootVersion:]); v < payloadSince {
		return nil, fmt.Errorf("%w: boot protocol %#x", errNoKernel, v)
	}
	sectors := uint64(image[bootSectors])
	if sectors == 0 {
		sectors = 4
	}
	start := (sectors+1)*bootSector + uint64(binary.LittleEndian.Uint32(image[bootPayload:]))
	end := start + uint64(binary.LittleEndian.Uint32(image[bootLength:]))
	if end > uint64(len(image)) {
		return nil, fmt.Errorf("%w: payload of %d..%d in %d bytes", errNoKernel, start, end, len(image))
	}
	return image[start:end], nil
}

// unpack decompresses a payload. Except with gzip, the kernel's build appends
// the size of the original in four bytes that are not part of the format.
func unpack(packed []byte) ([]byte, error) {
	switch {
	case bytes.HasPrefix(packed, []byte("\x1f\x8b")):
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		z.Multistream(false)
		return io.ReadAll(z)
	case bytes.HasPrefix(packed, []byte("\xfd7zXZ\x00")):
		return filter(packed[:len(packed)-4], "xz", "-dc")
	case bytes.HasPrefix(packed, []byte("\x28\xb5\x2f\xfd")):
		return filter(packed[:len(packed)-4], "zstd", "-dcq")
	}
	return nil, fmt.Errorf("%w: unknown compression % x", errNoKernel, packed[:min(6, len(packed))])
}

// filter runs a command on data.
func filter(data []byte, name string, args ...string) ([]byte, error) {
	cmd := subprocess.Command(context.Background(), name, args...)
	cmd.Stdin = bytes.NewReader(data)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// ExtractVmlinux makes the file to out of the bzImage from, unless it exists.
func ExtractVmlinux(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	image, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("read kernel: %w", err)
	}
	kernel, err := Vmlinux(image)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return writeWhole(to, kernel)
}

// writeWhole writes a file that others see whole or not at all.
func writeWhole(name string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
