package vm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Machine describes a virtual machine. The zero value of an optional field
// stands for its default.
type Machine struct {
	Arch    string // AMD64 or ARM64
	QEMU    string // the command
	Kernel  string // vmlinux, bzImage or Image
	Initrd  string
	Devices []Port   // vfio-user devices
	IOMMU   bool     // an emulated VT-d, strict; not with ARM64
	Ports   bool     // a root port of PCI Express above each device
	Beside  bool     // below each of them a second function, which has no driver; with Ports
	Memory  int      // MiB, default 512
	CPUs    int      // default 2
	Append  []string // kernel parameters
	Console bool     // the guest's console on the terminal, and no results
}

// Port is where a device's process listens.
type Port struct {
	Socket  string
	Timeout time.Duration // for each answer; default a minute
}

// Defaults of a Machine.
const (
	DefaultMemory = 512 // MiB
	DefaultCPUs   = 2
)

// msgTimeout is how long QEMU waits for the device's process. A late answer ends
// the connection for good, so it is far beyond what a loaded machine needs.
const msgTimeout = time.Minute

// Args returns the arguments of QEMU. The console goes to file descriptor 3,
// results to the standard output; with Console, both streams are the terminal's.
func (m Machine) Args() []string {
	memory, cpus, board := cmp.Or(m.Memory, DefaultMemory), cmp.Or(m.CPUs, DefaultCPUs), boards[m.Arch]
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-accel", "tcg,thread=multi", "-cpu", board.cpu,
		"-smp", fmt.Sprint(cpus), "-m", fmt.Sprintf("%dM", memory),
		// share=on: the device's process maps the guest's memory.
		"-object", fmt.Sprintf("memory-backend-memfd,id=mem,size=%dM,share=on", memory),
		"-machine", board.machine + ",memory-backend=mem",
	}
	args = append(args, board.args...)
	if m.Console {
		args = append(args, "-chardev", "stdio,id=console,signal=off", "-chardev", "null,id=results")
	} else {
		args = append(args, "-chardev", "file,id=console,path=/dev/fd/3", "-chardev", "stdio,id=results,signal=off")
	}
	args = append(args, "-serial", "chardev:console", "-serial", "chardev:results")
	if m.IOMMU {
		args = append(args, "-device", "intel-iommu,caching-mode=on") // before what it translates
	}
	for i, port := range m.Devices {
		bus := "pcie.0"
		if m.Ports { // at 5 GT/s: what is faster reports a link, and QEMU's does not come back
			bus = fmt.Sprintf("port%d", i)
			args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=%s,chassis=%d,x-speed=5", bus, i+1))
		}
		args = append(args, "-device", deviceJSON(port, bus, m.Beside))
		if m.Beside {
			args = append(args, "-device", fmt.Sprintf("pci-testdev,bus=%s,addr=0.1", bus))
		}
	}
	return append(args, "-kernel", m.Kernel, "-initrd", m.Initrd, "-append", strings.Join(m.parameters(), " "))
}

// parameters returns the kernel command line.
func (m Machine) parameters() []string {
	level := "ignore_loglevel"
	if m.Console {
		level = "loglevel=5"
	}
	p := []string{
		"printk.devkmsg=on", "panic=-1", "oops=panic", level, // the machine ends, instead of a guest that limps on
		"console=" + strings.TrimPrefix(m.Serial(0), "/dev/"),
		// An emulated processor that a loaded host does not run is no lockup: seconds, of which the second counts twice.
		"rcupdate.rcu_cpu_stall_timeout=120", "watchdog_thresh=60", "workqueue.watchdog_thresh=120",
	}
	p = append(p, boards[m.Arch].params...)
	if m.IOMMU {
		p = append(p, "intel_iommu=on", "iommu.strict=1")
	}
	return append(p, m.Append...)
}

// deviceJSON names the device's socket, which QEMU's key=value syntax cannot.
func deviceJSON(port Port, bus string, many bool) string {
	type address struct {
		Path string `json:"path"`
		Type string `json:"type"`
	}
	text, err := json.Marshal(struct {
		Driver  string  `json:"driver"`
		Bus     string  `json:"bus"`
		Many    bool    `json:"multifunction,omitempty"`
		Timeout int64   `json:"x-msg-timeout"`
		Socket  address `json:"socket"`
	}{"vfio-user-pci", bus, many, cmp.Or(port.Timeout, msgTimeout).Milliseconds(), address{port.Socket, "unix"}})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return string(text)
}

// Command returns the shell command that boots the machine by hand, with the
// results on the file descriptor that the guest expects them on.
func (m Machine) Command() string {
	words := []string{quote(m.QEMU)}
	for _, a := range m.Args() {
		words = append(words, quote(a))
	}
	if !m.Console {
		words = append(words, "3>&2")
	}
	return strings.Join(words, " ")
}

// quote protects a word from the shell.
func quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
