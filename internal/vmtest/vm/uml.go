package vm

import (
	"cmp"
	"fmt"
	"path/filepath"
)

// umlDevice is the virtio id by which the kernel's configuration knows devices of
// the PCI bus.
const umlDevice = 1234

// umlArgs returns the command line of a User-Mode Linux. Its streams are those
// that a guest of QEMU has: the second serial port is for results.
func (m Machine) umlArgs() []string {
	args := []string{
		fmt.Sprintf("mem=%dM", cmp.Or(m.Memory, DefaultMemory)), "initrd=" + m.Initrd,
		"uml_dir=" + filepath.Dir(m.Initrd), // where it notes that it runs
	}
	if m.Console {
		args = append(args, "ssl0=fd:0,fd:1", "console=ttyS0")
	} else {
		args = append(args, "con0=null,fd:3", "ssl1=null,fd:1", "console=tty0")
	}
	for _, port := range m.Devices {
		args = append(args, fmt.Sprintf("virtio_uml.device=%s:%d", port.Socket, umlDevice))
	}
	return append(append(args, m.common()...), m.Append...)
}
