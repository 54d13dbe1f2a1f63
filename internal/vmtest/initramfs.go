//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// item is a file of the guest: from the host's file, or with the given text.
type item struct {
	name string // in the guest
	from string
	text []byte
	perm uint32
}

// writeInitramfs writes the guest's root: its init, its plan and the items.
func writeInitramfs(name, init string, plan *wire.Plan, items []item) error {
	text, err := json.MarshalIndent(plan, "", "\t")
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("create initramfs: %w", err)
	}
	buffer := bufio.NewWriter(f)
	a := vm.NewArchive(buffer)
	a.Char("/dev/console", 5, 1) // or the guest's init has no standard streams
	a.Link("/etc/mtab", "/proc/self/mounts")
	err = addItems(a, append([]item{
		{name: "/init", from: init, perm: 0o755},
		{name: wire.PlanPath, text: text, perm: 0o644},
		{name: "/etc/passwd", text: []byte("root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n"), perm: 0o644},
		{name: "/etc/group", text: []byte("root:x:0:\nnfcomms-dev:x:977:\nnogroup:x:65534:\n"), perm: 0o644},
	}, items...))
	return errors.Join(err, a.Close(), buffer.Flush(), f.Close())
}

func addItems(a *vm.Archive, items []item) error {
	for _, i := range items {
		data := i.text
		if i.from != "" {
			var err error
			if data, err = os.ReadFile(i.from); err != nil {
				return fmt.Errorf("fill initramfs: %w", err)
			}
		}
		a.File(i.name, i.perm, data)
	}
	return nil
}
