//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// mountAll mounts the file systems that programs need. Those that a small kernel may lack are
// optional.
func mountAll() error {
	for _, m := range []struct {
		kind, where string
		optional    bool
	}{
		{"proc", "/proc", false},
		{"sysfs", "/sys", false},
		{"devtmpfs", "/dev", false},
		{"tmpfs", "/tmp", false},
		{"tmpfs", "/run", false},
		{"tmpfs", "/dev/shm", false},
		{"devpts", "/dev/pts", true},
		{"debugfs", "/sys/kernel/debug", true},
		{"tracefs", "/sys/kernel/tracing", true},
	} {
		err := os.MkdirAll(m.where, 0o755)
		if err == nil {
			err = unix.Mount(m.kind, m.where, m.kind, 0, "")
		}
		// The kernel may have mounted /dev itself.
		if err != nil && !m.optional && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", m.where, err)
		}
	}
	return errors.Join(os.Chmod("/tmp", 0o1777), os.Chmod("/dev/shm", 0o1777), linkStreams())
}

// linkStreams makes the names that shells and programs use for their streams.
func linkStreams() error {
	for name, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0",
		"/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, name); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	return nil
}

func release() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// openSerial opens a serial port as a line that changes no byte.
func openSerial(name string) (*os.File, error) {
	port, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	fd := int(port.Fd())
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		err = unix.IoctlSetTermios(fd, unix.TCSETS, t)
	}
	if err != nil {
		port.Close()
		return nil, fmt.Errorf("set up %s: %w", name, err)
	}
	return port, nil
}

// mark writes a line to the kernel's log.
func mark(text string) error {
	return os.WriteFile("/dev/kmsg", []byte(text+"\n"), 0)
}

// quietFaults stops the kernel from logging a stack for every fault that a test
// injects: over a serial port that is most of the time. Kernels without fault
// injection have no such files.
func quietFaults() {
	files, _ := filepath.Glob("/sys/kernel/debug/fail*/verbose") // the pattern is right
	for _, name := range files {
		_ = os.WriteFile(name, []byte("0"), 0) // only speed is lost
	}
}

func loadModule(m wire.Module) error {
	f, err := os.Open(m.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), m.Params, 0); err != nil {
		return fmt.Errorf("load %s %s: %w", m.Path, m.Params, err)
	}
	return nil
}

// unloadModule takes a module out; that programs have ended is enough to allow it.
func unloadModule(name string) error {
	if err := unix.DeleteModule(name, unix.O_NONBLOCK); err != nil {
		return fmt.Errorf("unload %s: %w", name, err)
	}
	return nil
}
