//go:build linux

package main

import (
	"context"
	"path/filepath"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// testQEMU sees that the QEMU that scripts/vm-qemu.sh unpacked keeps to its own
// modules: one of another build, which the system may have, would end it. The
// system's own QEMU, where that is used, has the system's modules.
func (w *workshop) testQEMU(ctx context.Context, s *stream) error {
	qemu, err := w.qemu(ctx, vm.AMD64)
	if err != nil || filepath.Base(qemu) != "qemu" {
		return err
	}
	guard := filepath.Join(w.out, "modules.so")
	if _, err := w.command(ctx, nil, "gcc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", guard, "internal/vmtest/c/modules.c"); err != nil {
		return err
	}
	trouble := ""
	if _, err := w.command(ctx, []string{"LD_PRELOAD=" + guard}, qemu, "-device", "help"); err != nil {
		trouble = err.Error()
	}
	u := newSuite(s, "vm/qemu")
	u.test("keeps-to-its-modules", trouble)
	u.end()
	return nil
}
