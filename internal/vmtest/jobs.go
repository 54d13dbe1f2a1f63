//go:build linux

package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/internal/vmtest/vm"
)

// kind says how a program is built and how its output is read.
type kind int

const (
	goTest  kind = iota // a Go test binary
	goMain              // a Go command; its exit status is one test
	cTest               // a C program with firmware/test/harness.h
	cMain               // any other C program; its exit status is one test
	rawFile             // a file that is there already, for vmtest exec
)

// program is something that a guest can run.
type program struct {
	name    string
	binary  string // what it is built as; "": the name
	kind    kind
	source  []string // Go: the package's folder; C: what gcc takes; rawFile: the file
	args    []string
	env     []string
	timeout time.Duration // 0: programTimeout
}

// Limits of time that a loaded machine does not reach.
const (
	programTimeout = 15 * time.Minute
	bootTimeout    = 3 * time.Minute
	jobTimeout     = time.Hour
)

// job is one boot of one machine.
type job struct {
	name     string
	group    string // "test" and "debug" are what the make targets run
	about    string
	kernel   string     // release, backports, debug or um
	machine  vm.Machine // without QEMU, Kernel, Initrd and Devices
	device   []string   // arguments of nfsim besides the socket; nil: no device, no module
	devices  int        // how many of them; 0: 1
	variants [][]string // more arguments of the i-th device
	count    int        // the last argument of every program, if it is not 0
	scripts  []string   // one more device for each: it breaks the rules so, and gets every program
	params   string     // of the module
	programs []string   // names in programs
	allow    []string   // expressions for kernel messages that the job provokes
	files    []item     // more files for the guest
	kmemleak bool
	udev     bool          // it is there, with our rule, and loads the module
	banner   string        // of an interactive shell, which takes the place of the programs
	limit    time.Duration // for everything; 0: jobTimeout
	defect   string        // seeded in the module: a patch of defects, without its ending
	wants    string        // the run must fail, and say what this expression matches
}

// named returns the program with its name.
func (p program) named(name string) program {
	p.name = name
	return p
}

// list returns the programs of the job: each once, or once for every script.
func (j job) list() []program {
	var all []program
	for _, name := range j.programs {
		p := programs[name].named(name)
		if j.count > 0 {
			p.args = append(slices.Clone(p.args), strconv.Itoa(j.count))
			p.timeout = cmp.Or(p.timeout, j.limit)
		}
		if len(j.scripts) == 0 {
			all = append(all, p)
			continue
		}
		for i, script := range j.scripts {
			p := p.named(name + "-" + strings.NewReplacer(":", "-", "@", "-", "+", "-", ",", "-").Replace(script))
			p.binary = name
			p.env = append(slices.Clone(p.env), hostileEnv(i, script)...)
			all = append(all, p)
		}
	}
	return all
}

// libSources are what libnfcomms is made of.
var libSources = []string{"kmod/lib/device.c", "kmod/lib/control.c", "kmod/lib/channel.c", "kmod/lib/async.c"}

// programs are those that jobs name. Each lies in the guest as /bin/NAME.
var programs = map[string]program{
	"selftest": {kind: goTest, source: []string{"./internal/vmtest/selftest"}},
	"kdev":     {kind: goTest, source: []string{"./bridge/kdev"}, args: []string{"-test.short"}, env: []string{"NFC_KDEV=dev:0,dev:1"}, timeout: 10 * time.Minute},
	"bulk":     {kind: goMain, source: []string{"./examples/bulk"}, args: []string{"--address", "dev:0", "/bin"}},
	"nfbench":  {kind: goMain, source: []string{"./cmd/nfbench"}, args: []string{"latency", "--address", "dev:0", "--batches", "100"}},
	"lib":      {kind: cTest, source: append([]string{"kmod/lib/test/guest_test.c", "firmware/test/harness.c"}, libSources...)},
	"echo":     {kind: cMain, source: append([]string{"kmod/lib/example/echo.c", "-Ikmod/lib"}, libSources...), args: []string{"dev:0"}},
	"validate": clientTest("validate"),
	"rights":   clientTest("rights"),
	"memory":   clientTest("memory"),
	"signal":   clientTest("signal"),
	"life":     clientTest("life"),
	"cycle":    clientTest("cycle"),
	"fuzz":     clientTest("fuzz"),
	"failnth":  clientTest("failnth"),
	"wake":     clientTest("wake"),
	"probe":    clientTest("probe"),
	"show":     clientTest("show"),
	"hostile":  clientTest("hostile"),
	"quiesce":  clientTest("quiesce"),
	"lost":     clientTest("lost"),
	"unknown":  clientTest("unknown"),
	"errors":   clientTest("errors"),
	"stall":    clientTest("stall"),
	"udev":     clientTest("udev"),
}

// clientTest is a C program of internal/vmtest/c, which talks to /dev/nfcomms0 by
// bare ioctls.
func clientTest(name string, args ...string) program {
	const c = "internal/vmtest/c/"
	return program{kind: cTest, source: []string{c + name + "_test.c", c + "rig.c", c + "bus.c", "firmware/test/harness.c", "-pthread"}, args: args}
}

// loaded is the module's parameter for a machine that is not ours alone: a heart
// that beats late there has not stopped.
const loaded = "heartbeat_timeout_ms=5000"

// neverAborted is the script of a device that does not answer an abort, and
// patient the module's parameters that let time pass before it is given up.
const (
	neverAborted = "drop+1:aborted"
	patient      = loaded + " cancel_timeout_ms=3000"
)

// jobs are what "vmtest run" knows, in the order it runs them.
var jobs = []job{
	{
		name: "bare", group: "test", about: "the harness itself, without a device",
		kernel: "release", programs: []string{"selftest"},
	},
	{
		name: "ioctl", group: "test", about: "every ioctl, memory, signals and death of clients",
		kernel: "release", device: []string{}, params: loaded, programs: []string{"validate", "rights", "memory", "signal", "life", "lib", "echo", "show", "wake"},
	},
	{
		name: "stock", group: "test", about: "the contract of a back end, and an example",
		kernel: "release", device: []string{}, devices: 2, params: loaded, programs: []string{"kdev", "bulk"},
	},
	{
		name: "one-vector", group: "test", about: "a single interrupt for everything",
		kernel: "release", device: []string{"--vectors=1"}, params: loaded, programs: []string{"life", "bulk"},
	},
	{
		name: "posted", group: "test", about: "a mailbox BAR that cannot be mapped, and writes that are posted",
		kernel: "release", device: []string{"--no-mmap"}, params: loaded, programs: []string{"validate", "bulk"},
	},
	{
		name: "iommu", group: "test", about: "an IOMMU between the device and memory",
		kernel: "release", machine: vm.Machine{IOMMU: true}, device: []string{}, params: loaded, programs: []string{"memory", "life", "bulk"},
	},
	{
		name: "cycle", group: "test", about: "removal, unbinding, unloading, suspending under load",
		kernel: "release", device: []string{}, params: loaded, programs: []string{"cycle"},
	},
	{
		name: "hostile", group: "test", about: "devices that break the rules",
		kernel: "release", machine: vm.Machine{IOMMU: true, Memory: 1024}, device: []string{}, programs: []string{"hostile"},
		scripts: []string{"random+7", "count+5", "replay+5", "flip@20", "overreach+3", "wild+3", "irq-drop+3", "hang@30", "gone@30", "feign@30", "die@30"},
	},
	{
		name: "unknown", group: "test", about: "devices of another version beside one that the driver knows",
		kernel: "release", device: []string{}, devices: 3, variants: [][]string{nil, {"--pci-version=2.0"}, {"--abi-version=9.1"}},
		programs: []string{"unknown"},
	},
	{
		name: "udev", group: "test", about: "a card is found by its alias, and its node gets its group and its name",
		kernel: "release", device: []string{}, udev: true, programs: []string{"udev"},
	},
	{
		name: "quiesce", group: "test", about: "a device that never agrees to an abort",
		kernel: "release", device: []string{}, programs: []string{"quiesce"}, params: patient,
		scripts: []string{neverAborted},
	},
	{
		name: "lost", group: "test", about: "devices that beat, but lose a message",
		kernel: "release", machine: vm.Machine{Memory: 1024}, device: []string{}, programs: []string{"lost"}, params: loaded + " stall_timeout_ms=3000",
		scripts: []string{"lose@2:direct", "drop:ack", "lose@2:begin", "drop@2:ack", "lose@2:list", "lose@8:list", "drop:done", "lose@9:list", "drop@2:done"},
	},
	{
		name: "backports", group: "test", about: "the current stable kernel",
		kernel: "backports", device: []string{}, params: loaded, programs: []string{"validate", "memory", "bulk"},
	},
}
